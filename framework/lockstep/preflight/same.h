// The conclusion that texts of ranks are the same, or how they differ. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/preflight/check.h"

namespace lockstep::preflight {

// In the words of comm::check_same(), of the facts that are texts; std::nullopt if all are equal.
std::optional<std::string> difference(std::string_view name, const Facts& facts);

// One finding of the level `otherwise` with `mend`, or a green one.
std::vector<Finding> same(std::string_view name, const Facts& facts, Level otherwise, const std::string& mend);

}  // namespace lockstep::preflight
