// The name that was probably meant, for messages about an unknown name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

inline constexpr std::size_t kLongestName = 64;  // a longer text resembles no name

// The nearest of `names`, at a quarter of the letters of `given` at most; empty: none is so near.
std::string nearest_name(std::string_view given, std::span<const std::string> names);

}  // namespace lockstep::train
