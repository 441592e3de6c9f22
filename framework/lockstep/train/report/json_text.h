// JSON from a file that may be damaged or foreign.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lockstep::train {

// Discarded (is_discarded()) where `text` is no JSON, or nests deeper than anything of ours: what walks values calls
// itself for each level, and would run out of stack. Never throws for what is in the text.
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

// JSON has no word for what is not finite, which is written as null. Throws nlohmann::json::exception for other types.
inline double number(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace lockstep::train
