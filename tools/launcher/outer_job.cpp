#include "tools/launcher/outer_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/core/error.h"
#include "tools/launcher/secret.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

// Parameters of mpirun and its daemons, which they hand to the ranks; another mpirun must not take them for its own.
constexpr std::array<std::string_view, 25> kOfDaemons{"orte_",
                                                      "ess",
                                                      "pmix",
                                                      "plm",
                                                      "ras",
                                                      "rmaps",
                                                      "routed",
                                                      "rml",
                                                      "grpcomm",
                                                      "odls",
                                                      "iof",
                                                      "state",
                                                      "errmgr",
                                                      "schizo",
                                                      "dfs",
                                                      "filem",
                                                      "rtc",
                                                      "regx",
                                                      "propagate",
                                                      "snapc",
                                                      "sstore",
                                                      "initial_wdir",
                                                      "shmem_RUNTIME",
                                                      "mpi_oversubscribe",
                                                      "hwloc_base_binding"};

}  // namespace

int outer_size(const ReadVariable& variable) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const auto text = variable(name);
    int size = 0;
    if (text && std::from_chars(text->data(), text->data() + text->size(), size).ec == std::errc()) return size;
  }
  return 0;
}

bool is_of_outer_job(const std::string& name) {
  // Open MPI 5 gives ranks no parameters of its daemons, so that these are the user's own.
  if (name.starts_with("PRTE_MCA_") || name.starts_with("PRTE_ALLOW_")) return false;
  for (const std::string_view prefix :
       {"PMIX_", "ORTE_", "PRTE_", "PMI_", "SLURM_PMIX", "MPI_LOCAL", "HYDI_", "HYDRA_PROXY"}) {
    if (name.starts_with(prefix)) return true;
  }
  constexpr std::string_view kParameter = "OMPI_MCA_";
  if (!name.starts_with("OMPI_")) return false;
  if (!name.starts_with(kParameter)) return !name.starts_with("OMPI_ALLOW_") && !name.starts_with("OMPI_LOCKSTEP_");
  const std::string_view parameter = std::string_view(name).substr(kParameter.size());
  if (parameter == "orte_tmpdir_base") return false;
  return std::any_of(kOfDaemons.begin(), kOfDaemons.end(),
                     [&](std::string_view prefix) { return parameter.starts_with(prefix); });
}

void leave_outer_job() {
  std::vector<std::string> names;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view text(*at);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) {
    if (is_of_outer_job(name)) check_call(::unsetenv(name.c_str()) == 0, "launch", "{} cannot be unset", name);
  }
}

OuterJob agree_in_outer_job(const std::function<int()>& listen) {
  const comm::Environment environment(comm::ThreadLevel::Single);
  const auto world = comm::Communicator::world();
  std::string said;
  comm::collectively(world, [&] {
    check(comm::launched_local_ranks() == 1, "launch",
          "{} launchers were started on one node, expected one on each: mpirun -H a:1,b:1 ..., or --map-by ppr:1:node",
          comm::launched_local_ranks());
    if (world.rank() != 0) return;
    const int port = listen();
    said = nlohmann::json{{"port", port}, {"addresses", own_addresses()}, {"secret", Secret::random().text()}}.dump();
  });
  const auto agreed = nlohmann::json::parse(world.broadcast_string(said));
  return {.node = world.rank(),
          .nodes = world.size(),
          .addresses = agreed.at("addresses").get<std::vector<std::string>>(),
          .port = agreed.at("port").get<int>(),
          .secret = agreed.at("secret").get<std::string>()};
}

}  // namespace lockstep::launcher
