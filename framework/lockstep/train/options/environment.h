// Values of options from environment variables (OptionRow::variable): they count where neither the command line nor an
// option file sets the option. An empty variable counts as none. One thread.
#pragma once

#include <CLI/App.hpp>
#include <map>
#include <span>
#include <string>

#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

class EnvironmentValues {
 public:
  explicit EnvironmentValues(CLI::App& app) : app_(app) {}  // `app` must outlive this object

  // Gives the options of `rows` that were not set their variables' values; after app.parse(). Throws CLI11's errors.
  void apply(std::span<const OptionRow> rows);
  // Returns the variables that gave values, by the names of their options.
  const std::map<std::string, std::string>& variables() const { return variables_; }
  // Adds the variable to an error about an option whose value came from one.
  std::string located(const std::string& error) const;

 private:
  CLI::App& app_;
  std::map<std::string, std::string> variables_;
};

}  // namespace lockstep::train
