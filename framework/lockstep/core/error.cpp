#include "lockstep/core/error.h"

namespace lockstep {

void fail_with(std::string_view site, std::string_view message) { throw Error(formatted("[{}] {}", site, message)); }

}  // namespace lockstep
