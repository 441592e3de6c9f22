// The words about an object that refuses calls after a failure, alike for communicators and for engines over them.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/core/format.h"

namespace lockstep {

// Returns "the engine cannot be used after an earlier failure: REASON" for "the engine".
inline std::string unusable(std::string_view object, std::string_view reason) {
  return formatted("{} cannot be used after an earlier failure: {}", object, reason);
}

}  // namespace lockstep
