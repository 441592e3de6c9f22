// Reads --config files strictly (train/options/flat_toml.h): each key once, with one value unless the option takes
// several, and none that is no option. Throws CLI::ValidationError that names file, line, key and what was expected.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::train {

struct TomlEntry;

class ConfigFile : public CLI::ConfigTOML {
 public:
  // `app` outlives this.
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // Looks at the file before it is opened. Returns the fault, as a CLI11 validator does; empty: none, or no such file.
  std::string look_at(const std::string& path);
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // `error` is about an option that it names first, as "--lr". Where the file, not the command line, gave its value,
  // the same with file, line and key.
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

  const CLI::App& app_;
  std::string path_;
  mutable std::map<const CLI::Option*, Origin> given_;  // as from_config() found them
};

}  // namespace lockstep::train
