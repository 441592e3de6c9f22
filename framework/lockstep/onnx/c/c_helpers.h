// The functions of C that generated sources call.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace lockstep::onnx {

// Returns the text of these functions, and of those that they call, in an order that C accepts. Throws Error for a name
// that is none of them.
std::string c_helpers(const std::set<std::string>& names);

// The text with each `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace lockstep::onnx
