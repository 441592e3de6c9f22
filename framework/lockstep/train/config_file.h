// Reads --config files strictly: CLI11's reader joins the values of repeated keys, and options for which the last value
// counts, as on command lines, would hide what is a mistake in a file. Throws CLI::ValidationError.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <string>
#include <vector>

namespace lockstep::train {

class ConfigFile : public CLI::ConfigTOML {
 public:
  // `app` outlives this.
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // Before the file is opened: what is wrong with it, as a CLI11 validator says it; empty: nothing, or there is none.
  std::string look_at(const std::string& path);
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  void refuse_repeated_keys(const std::string& text) const;

  const CLI::App& app_;
  std::string path_;
};

}  // namespace lockstep::train
