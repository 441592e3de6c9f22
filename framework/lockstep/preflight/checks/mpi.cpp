// The MPI library: its version, and the file that is loaded.
#include <algorithm>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/host/build_id.h"
#include "lockstep/launch/mpirun_kind.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/same.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr const char* kLibrariesOfMpi[] = {"libmpi.", "libopen-pal.", "libmpich."};

json gather_mpi(const Subject&, Exchange&) {
  std::string version = comm::Environment::library();  // its name and version, then where it was built
  version.resize(std::min(version.size(), version.find(',')));
  std::string build;
  for (const host::LibraryId& library : host::library_ids()) {
    if (std::ranges::any_of(kLibrariesOfMpi, [&](const char* name) { return library.name.starts_with(name); }))
      build += library.id + " ";
  }
  return {{"version", version}, {"build", build}};
}

Facts part(const Facts& facts, const char* name) {
  Facts parts = facts;
  for (RankFacts& rank : parts) rank.value = json(rank.value.at(name));
  return parts;
}

// Debian's packages, where the library's own words tell which those are.
std::string mend_for(const std::string& version) {
  const char* packages = launch::is_open_mpi(version)   ? ": apt-get install openmpi-bin libopenmpi3"
                         : version.starts_with("MPICH") ? ": apt-get install mpich libmpich12"
                                                        : "";
  return formatted("install the same MPI package on all hosts{}", packages);
}

std::vector<Finding> conclude_mpi(const Facts& facts) {
  const std::string mend = mend_for(facts.front().value.at("version"));
  if (const auto text = difference("the MPI library", part(facts, "version")))
    return {{.level = Level::Red, .what = *text, .mend = mend}};
  if (const auto text = difference("the build of the MPI library", part(facts, "build")))
    return {{.level = Level::Red, .what = *text, .mend = mend}};
  return {{.what = facts.front().value.at("version")}};
}

}  // namespace

const Check kMpi{"mpi", Cost::Cheap, gather_mpi, conclude_mpi};

}  // namespace lockstep::preflight
