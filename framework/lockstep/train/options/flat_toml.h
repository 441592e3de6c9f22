// Option files: the part of TOML that a list of options needs. KEY = VALUE, one on a line; a value is a text in quotes,
// a number, true or false, or a list of those in brackets, which may go on over several lines; # begins a comment. A
// bare word may stand for a text. Sections, dotted keys, tables and texts over several lines are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

struct TomlEntry {
  std::int64_t line = 0;  // of the key, from 1
  std::string key{};
  std::vector<std::string> values{};  // without quotes; bare words with commas or blanks between them are several
};

// In the order of the file. Throws Error, "line 3: ...", for what it cannot read.
std::vector<TomlEntry> parse_flat_toml(std::string_view text);

}  // namespace lockstep::train
