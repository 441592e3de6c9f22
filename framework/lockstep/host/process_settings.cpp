#include "lockstep/host/process_settings.h"

#include <omp.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "lockstep/core/format.h"
#include "lockstep/host/blas.h"
#include "lockstep/host/machine.h"

namespace lockstep::host {
namespace {

// Iterations of libgomp's waiting loop, 10 to 30 ns each. libgomp's default is 300000.
constexpr const char* kShortSpin = "1000";

constexpr const char* kShortBlasSpin = "14";  // the same for OpenBLAS: 2^14 ticks; its default is 2^26

// Open MPI's default without "put": in version 4.1, long messages over TCP reach 64% of a 1 Gbit/s link with put, and
// 95% with send.
constexpr const char* kTcpFlags = "send,inplace,need-ack,need-csum,hetero-rdma";

constexpr const char* kUndone = "LOCKSTEP_UNDONE_BINDING";

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void start_again(char** argv) {
  // Without an interpreter's base address, the process is ld.so itself, and argv does not begin with the program.
  if (getauxval(AT_BASE) == 0) return;
  // Resolves the link: the kernel would otherwise name the process "exe".
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), argv);
}

}  // namespace

bool oversubscribed(const Cores& cores, int local_ranks, int threads) {
  const int wanted = local_ranks * threads;
  return threads > cores.physical || wanted > cores.node_cores || (cores.quota > 0 && wanted > cores.quota);
}

ProcessSettings process_settings(const ProcessFacts& facts) {
  ProcessSettings settings;
  const auto set = [&](const char* name, std::string value) {
    if (!facts.variable(name)) settings.variables.push_back({name, std::move(value)});
  };
  const bool tight = oversubscribed(facts.cores, facts.local_ranks, facts.threads);
  if (tight && facts.local_ranks > 1) set("OMPI_MCA_mpi_yield_when_idle", "1");  // MPI_Init reads it later
  set("OMPI_MCA_btl_tcp_flags", kTcpFlags);
  const std::size_t read_later = settings.variables.size();
  if (facts.threads > 1 && !facts.variable("OMP_WAIT_POLICY")) set("GOMP_SPINCOUNT", tight ? "0" : kShortSpin);
  if (facts.blas_pool > facts.threads) set("OPENBLAS_NUM_THREADS", std::to_string(facts.threads));
  if (facts.blas_pool > 0 && facts.threads > 1) set("OPENBLAS_THREAD_TIMEOUT", kShortBlasSpin);
  settings.reload = settings.variables.size() > read_later;
  return settings;
}

bool is_bound_by_default(const ProcessFacts& facts) {
  if (!facts.variable("OMPI_MCA_orte_bound_at_launch")) return false;
  for (const char* asked :
       {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy", "OMPI_MCA_hwloc_base_cpu_set",
        "OMPI_MCA_rmaps_base_cpus_per_rank", "OMPI_MCA_orte_rankfile"}) {
    if (facts.variable(asked)) return false;
  }
  if (facts.variable("LOCKSTEP_BIND").value_or("none") != "none") return false;  // train.sh has bound it
  Cores whole = facts.cores;
  whole.physical = whole.node_cores;
  const BudgetRequest request{.local_ranks = facts.local_ranks, .sharing = facts.local_ranks, .threads = facts.threads};
  return budget(whole, request).compute > facts.cores.physical;
}

std::string undone_binding() {
  const auto cores = environment(kUndone);
  return cores ? formatted("Open MPI's default binding to {} core{} was undone", *cores, *cores == "1" ? "" : "s") : "";
}

void apply_process_settings(int local_ranks, int threads, char** argv) {
  // The program that starts again inherits the mask, from which OpenMP then makes its places.
  leave_first_place();
  Cores cores = available_cores();
  const bool has_places = omp_get_num_places() > 0;
  bool undone = false;
  if (is_bound_by_default({.cores = cores, .local_ranks = local_ranks, .threads = threads, .variable = environment}) &&
      !environment(kUndone) && Machine::here().bind_process(Machine::here().cpus())) {
    setenv(kUndone, std::to_string(cores.physical).c_str(), 1);  // also for the program that starts again
    cores = available_cores(Machine::here().cpus());
    undone = true;
  }
  const int compute = budget(cores, {.local_ranks = local_ranks, .threads = threads, .loaders = 0}).compute;
  const ProcessSettings settings = process_settings({.cores = cores,
                                                     .local_ranks = local_ranks,
                                                     .threads = compute,
                                                     .blas_pool = blas_facts().own_pool,
                                                     .variable = environment});
  // The restarted program finds the variables set, and does not restart again.
  for (const auto& [name, value] : settings.variables) {
    if (setenv(name.c_str(), value.c_str(), 1) != 0) return;
  }
  // OpenMP made its places of the binding that was undone.
  if (settings.reload || (undone && has_places)) start_again(argv);
}

}  // namespace lockstep::host
