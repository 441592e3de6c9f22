// JSON in which each value knows its line, so that an error about a value says where the value stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::launch {

struct LocatedJson {
  enum class Kind : std::uint8_t { Null, Bool, Number, Text, List, Object };

  Kind kind = Kind::Null;
  std::int64_t line = 0;  // counts from 1
  std::string text{};     // of a text; of a number or bool as it is written
  std::vector<LocatedJson> items{};
  std::vector<std::pair<std::string, LocatedJson>> members{};

  const LocatedJson* find(std::string_view name) const;  // nullptr: no such member
};

// Throws Error with the line where `text` is no JSON, nests deeper than 32 levels, or names a member twice.
LocatedJson parse_located_json(std::string_view text, const std::string& file);

}  // namespace lockstep::launch
