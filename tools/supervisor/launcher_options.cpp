#include "tools/supervisor/launcher_options.h"

#include <algorithm>
#include <array>
#include <span>

namespace lockstep::supervisor {
namespace {

using Meaning = LauncherOption::Meaning;

// From `mpirun --help all` of Open MPI 4.1 and 5.0.
constexpr std::array kOpenMpi = std::to_array<LauncherOption>({
    {"n", 1, Meaning::Ranks},
    {"np", 1, Meaning::Ranks},
    {"c", 1, Meaning::Ranks},
    {"hostfile", 1, Meaning::Hostfile},
    {"machinefile", 1, Meaning::Hostfile},
    {"default-hostfile", 1, Meaning::Hostfile},
    {"H", 1, Meaning::HostList},
    {"host", 1, Meaning::HostList},
    {"wd", 1, Meaning::Folder},
    {"wdir", 1, Meaning::Folder},
    {"path", 1, Meaning::Elsewhere},
    {"preload-files", 1, Meaning::Elsewhere},
    {"preload-binary", 0, Meaning::Elsewhere},
    {"mca", 2, Meaning::Setting},
    {"gmca", 2, Meaning::Setting},
    {"prtemca", 2, Meaning::Setting},
    {"pmixmca", 2, Meaning::Other},
    {"app", 1, Meaning::Places},
    {"rf", 1, Meaning::Places},
    {"rankfile", 1, Meaning::Places},
});
constexpr std::array kOpenMpiOthers = std::to_array<std::string_view>({"N",
                                                                       "add-host",
                                                                       "add-hostfile",
                                                                       "am",
                                                                       "bind-to",
                                                                       "cartofile",
                                                                       "cf",
                                                                       "cpu-list",
                                                                       "cpu-set",
                                                                       "cpus-per-proc",
                                                                       "cpus-per-rank",
                                                                       "debugger",
                                                                       "display",
                                                                       "fwd-environment",
                                                                       "hnp",
                                                                       "launch-agent",
                                                                       "map-by",
                                                                       "max-restarts",
                                                                       "max-vm-size",
                                                                       "npernode",
                                                                       "npersocket",
                                                                       "ompi-server",
                                                                       "output",
                                                                       "output-filename",
                                                                       "personality",
                                                                       "ppr",
                                                                       "prefix",
                                                                       "rank-by",
                                                                       "report-events",
                                                                       "report-pid",
                                                                       "report-uri",
                                                                       "runtime-options",
                                                                       "slot-list",
                                                                       "spawn-timeout",
                                                                       "stdin",
                                                                       "timeout",
                                                                       "tune",
                                                                       "x",
                                                                       "xml-file",
                                                                       "xterm"});

// From `mpiexec -help` of MPICH 4.0, with Intel MPI's own names of the same.
constexpr std::array kHydra = std::to_array<LauncherOption>({
    {"n", 1, Meaning::Ranks},
    {"np", 1, Meaning::Ranks},
    {"f", 1, Meaning::Hostfile},
    {"hostfile", 1, Meaning::Hostfile},
    {"machinefile", 1, Meaning::Hostfile},
    {"machine", 1, Meaning::Hostfile},
    {"hosts", 1, Meaning::HostList},
    {"host", 1, Meaning::HostList},
    {"hostlist", 1, Meaning::HostList},
    {"wdir", 1, Meaning::Folder},
    {"dir", 1, Meaning::Folder},
    {"path", 1, Meaning::Elsewhere},
    {"genv", 2, Meaning::Other},
    {"env", 2, Meaning::Other},
    {"launcher", 1, Meaning::Setting},
    {"bootstrap", 1, Meaning::Setting},
    {"launcher-exec", 1, Meaning::Setting},
    {"bootstrap-exec", 1, Meaning::Setting},
    {"configfile", 1, Meaning::Places},
});
constexpr std::array kHydraOthers = std::to_array<std::string_view>({"bind-to",
                                                                     "demux",
                                                                     "envlist",
                                                                     "errfile-pattern",
                                                                     "genvlist",
                                                                     "gpus-per-proc",
                                                                     "iface",
                                                                     "localhost",
                                                                     "map-by",
                                                                     "membind",
                                                                     "nameserver",
                                                                     "order-nodes",
                                                                     "outfile-pattern",
                                                                     "perhost",
                                                                     "ppn",
                                                                     "prepend-pattern",
                                                                     "ranks-per-proc",
                                                                     "rmk",
                                                                     "rr",
                                                                     "topolib",
                                                                     "usize"});

std::string_view without_dashes(std::string_view word) {
  word.remove_prefix(std::min<std::size_t>(word.starts_with("--") ? 2 : 1, word.size()));
  return word;
}

}  // namespace

LauncherOption launcher_option(launch::MpirunKind kind, std::string_view word) {
  const bool hydra = kind == launch::MpirunKind::Hydra;
  const auto known = hydra ? std::span<const LauncherOption>(kHydra) : std::span<const LauncherOption>(kOpenMpi);
  const auto others =
      hydra ? std::span<const std::string_view>(kHydraOthers) : std::span<const std::string_view>(kOpenMpiOthers);
  const std::string_view name = without_dashes(word);
  const auto found = std::ranges::find(known, name, &LauncherOption::name);
  if (found != known.end()) return *found;
  const bool has_value = std::ranges::find(others, name) != others.end();
  return {.name = name, .values = has_value ? 1U : 0U};
}

}  // namespace lockstep::supervisor
