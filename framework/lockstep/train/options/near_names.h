// Finds the name that was probably intended, for messages about an unknown name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

inline constexpr std::size_t kLongestName = 64;  // characters; longer texts are not compared

// Returns "batch-size" for "Batch_Size".
std::string normal_form(std::string_view name);

// Returns the one of `names` whose normal form has the smallest distance, at most a quarter of the length of `given`;
// empty: none.
std::string nearest_name(std::string_view given, std::span<const std::string> names);

}  // namespace lockstep::train
