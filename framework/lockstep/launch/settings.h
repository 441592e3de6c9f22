// Settings by name, from this process's environment or from a file of NAME=VALUE lines, each with the place where it
// stands. '#' begins a comment line; `export NAME=VALUE` and one pair of quotes around a value are taken as a shell
// takes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::launch {

struct Setting {
  std::string value;
  std::string origin;  // "cluster.env:3: MASTER_PORT", "MASTER_PORT in the environment"
};

class Settings {
 public:
  static Settings of_environment();
  static Settings of_text(std::string_view text, const std::string& file);

  const Setting* find(const std::string& name) const;  // nullptr: not set, or empty
  // A whole number in this range; nothing if it is not set. Throws Error for anything else.
  std::optional<std::int64_t> number(const std::string& name, std::int64_t least, std::int64_t most) const;

 private:
  std::map<std::string, Setting> settings_;
};

}  // namespace lockstep::launch
