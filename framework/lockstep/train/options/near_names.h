// Finds the name that was probably intended, for messages about an unknown name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

inline constexpr std::size_t kLongestName = 64;  // characters; longer texts are not compared

// Returns the one of `names` with the smallest distance, at most a quarter of the length of `given`; empty: none.
std::string nearest_name(std::string_view given, std::span<const std::string> names);

}  // namespace lockstep::train
