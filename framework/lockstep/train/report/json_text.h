// Parses JSON of a file that may be damaged or foreign.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lockstep::train {

// Returns the value; it is discarded (is_discarded()) if `text` is not JSON or is nested deeper than 64 levels:
// functions that walk values are recursive and would run out of stack. Does not throw for any text.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepest) return Json(nlohmann::detail::value_t::discarded);
  }
  return Json::parse(text, nullptr, false);
}

// Reads a number; null is NaN, because JSON has no form for a number that is not finite. Throws
// nlohmann::json::exception for other types.
inline double number(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace lockstep::train
