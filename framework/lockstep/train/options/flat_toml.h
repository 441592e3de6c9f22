// Parses option files: the part of TOML that a list of options needs. Each line has KEY = VALUE; a value is a text in
// quotes, a number, true or false, or a list of those in brackets, which may take several lines; # begins a comment. A
// text may also be a word without quotes. Sections, dotted keys, tables and texts of several lines are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

struct TomlValue {
  std::string text{};    // without quotes
  bool is_text = false;  // it has quotes

  bool is_boolean() const { return !is_text && (text == "true" || text == "false"); }
};

struct TomlEntry {
  std::int64_t line = 0;  // line of the key, from 1
  std::string key{};
  std::vector<TomlValue> values{};  // words separated by commas or blanks are several values
};

// Returns the entries in the order of the file; throws Error("line 3: ...") for an invalid text.
std::vector<TomlEntry> parse_flat_toml(std::string_view text);

}  // namespace lockstep::train
