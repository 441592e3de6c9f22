// Reads --config files strictly (train/options/flat_toml.h): each key is an option and occurs once, with one value
// unless the option takes several. Throws CLI::ValidationError with file, line, key and expectation.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::train {

struct TomlEntry;
struct TomlValue;

class ConfigFile : public CLI::ConfigTOML {
 public:
  // The type of an option's values in a file. A text may be a number without quotes (keep = 3), but not true or false.
  enum class Type : std::uint8_t { Switch, Number, Text };

  // `app` must outlive this object.
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // Declares the type of an option's values; the values of other options are not checked for their type.
  void declare(const CLI::Option* option, Type type) { types_[option] = type; }

  // Checks the file before it is opened. Returns the error, as a CLI11 validator does; empty: none, or no such file.
  std::string look_at(const std::string& path);
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // Takes an error that begins with an option, such as "--lr". If the file, and not the command line, set that option,
  // returns the error with file, line and key.
  std::string located(const std::string& error) const;

 private:
  struct Origin {
    std::int64_t line;
    std::string key;
  };
  std::string place(std::int64_t line) const;
  [[noreturn]] void refuse(const TomlEntry& entry, const std::string& what) const;
  const CLI::Option* option(const std::string& key) const;
  void refuse_unknown(const std::vector<TomlEntry>& entries) const;
  void check_values(const TomlEntry& entry) const;
  void check_type(const TomlEntry& entry, const TomlValue& value) const;

  const CLI::App& app_;
  std::map<const CLI::Option*, Type> types_;
  std::string path_;
  mutable std::map<const CLI::Option*, Origin> given_;  // filled by from_config()
};

}  // namespace lockstep::train
