// The shared libraries beside MPI's: another build of one may compute other bits.
#include <algorithm>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/host/build_id.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/same.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

// The libraries that MPI loads itself differ with the network cards.
constexpr std::string_view kCompute[] = {"libopenblas", "libblas", "libflexiblas", "libblis", "libmkl",
                                         "libdnnl",     "libgomp", "libomp",       "libc.",   "libm.",
                                         "libstdc++",   "libhdf5", "libhwloc"};

json gather_libraries(const Subject&, Exchange&) {
  std::string text;
  for (const host::LibraryId& library : host::library_ids()) {
    if (std::ranges::any_of(kCompute, [&](std::string_view name) { return library.name.starts_with(name); }))
      text += formatted("{} {}\n", library.name, library.id.substr(0, 12));
  }
  return text;
}

std::vector<Finding> conclude_libraries(const Facts& facts) {
  return same("each shared library (name, build id)", facts, Level::Yellow,
              "install the same packages on all hosts, or results may differ in their last digits");
}

}  // namespace

const Check kLibraries{"libraries", Cost::Cheap, gather_libraries, conclude_libraries};

}  // namespace lockstep::preflight
