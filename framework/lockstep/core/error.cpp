#include "lockstep/core/error.h"

namespace lockstep {

void fail_with(std::string_view place, std::string_view message) { throw Error(formatted("[{}] {}", place, message)); }

}  // namespace lockstep
