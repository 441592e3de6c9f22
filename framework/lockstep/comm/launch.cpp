#include "lockstep/comm/launch.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <sstream>

#include "lockstep/core/format.h"

namespace lockstep::comm {
namespace {

std::optional<int> number(const ReadVariable& variable, const std::string& name) {
  const std::optional<std::string> text = variable(name);
  if (!text) {
    return std::nullopt;
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

// Parses Slurm's "2(x3),1": three nodes with two tasks each, then one node with one.
int tasks_of_slurm_node(const std::string& text, int node) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t repeat = part.find("(x");
    const int times = repeat == std::string::npos ? 1 : std::atoi(part.c_str() + repeat + 2);
    if (node < times) return std::max(1, std::atoi(part.c_str()));
    node -= times;
  }
  return 1;
}

bool is_open_mpi(const LaunchFacts& facts) { return facts.library.find("Open MPI") != std::string::npos; }

std::string brief(const std::string& library) { return library.substr(0, library.find_first_of(",\n")); }

}  // namespace

std::optional<std::string> launch_problem(const LaunchFacts& facts) {
  if (facts.world_size > 1 || facts.variable("LOCKSTEP_ALLOW_SINGLETONS").value_or("0") == "1") {
    return std::nullopt;
  }
  const std::string built = brief(facts.library);
  const std::string declare = "(set LOCKSTEP_ALLOW_SINGLETONS=1 if independent processes are intended)";

  // The innermost launcher counts first: mpirun inside a Slurm step inherits the step's variables as well.
  if (const auto size = number(facts.variable, "OMPI_COMM_WORLD_SIZE")) {
    if (*size <= 1) {
      return std::nullopt;
    }
    return formatted(
        "Open MPI's mpirun started {} processes, but this program is linked with {} and each is alone: use "
        "the mpirun of that library {}",
        *size, built, declare);
  }
  // Both MPICH's hydra and Slurm's pmi2 set PMI_SIZE; the step's variable tells which of the two it is.
  const auto step_size = number(facts.variable, "SLURM_STEP_NUM_TASKS");
  const auto pmi_size = number(facts.variable, "PMI_SIZE");
  if (step_size && *step_size > 1 && (!pmi_size || *pmi_size == *step_size)) {
    return formatted("srun started {} tasks, but MPI ({}) sees one rank in each: use srun --mpi={} {}", *step_size,
                     built, is_open_mpi(facts) ? "pmix" : "pmi2", declare);
  }
  if (pmi_size && *pmi_size > 1) {
    return formatted(
        "a launcher speaking PMI (MPICH, Intel MPI) started {} processes, but this program is linked with "
        "{} and each is alone: use the mpirun of that library {}",
        *pmi_size, built, declare);
  }
  for (const char* name : {"PALS_SIZE", "FLUX_JOB_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_SIZE"}) {
    if (const auto size = number(facts.variable, name); size && *size > 1) {
      return formatted(
          "{}={} but MPI ({}) sees one rank: launcher and library do not match, use the mpirun of that "
          "library {}",
          name, *size, built, declare);
    }
  }
  return std::nullopt;
}

int launched_local_ranks(const ReadVariable& variable) {
  // Open MPI; MPICH and Intel MPI; MVAPICH. The innermost launcher counts first.
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"}) {
    if (const auto ranks = number(variable, name)) return std::max(1, *ranks);
  }
  if (const auto tasks = variable("SLURM_STEP_TASKS_PER_NODE")) {
    return tasks_of_slurm_node(*tasks, number(variable, "SLURM_NODEID").value_or(0));
  }
  return 1;
}

namespace {

// The first of the variables that holds a number. In a batch script, where no step runs, Slurm sets the job's.
int first_number(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (std::strncmp(name, "SLURM_", 6) == 0 && std::getenv("SLURM_STEP_TASKS_PER_NODE") == nullptr) continue;
    const char* value = std::getenv(name);
    int number = -1;
    if (value != nullptr && std::from_chars(value, value + std::strlen(value), number).ec == std::errc()) return number;
  }
  return otherwise;
}

}  // namespace

int launched_ranks() {
  return first_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

int launched_local_rank() {
  return first_number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"},
                      0);
}

int launched_rank() {
  return first_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"}, -1);
}

int launched_local_ranks() {
  return launched_local_ranks([](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace lockstep::comm
