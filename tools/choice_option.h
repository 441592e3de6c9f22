// An option of a command that is an enumeration with Choices (train/options/option_value.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lockstep/train/options/option_value.h"

namespace lockstep::tools {

// Adds an option that accepts the names of the enumeration; `value` is the default, and must outlive the command.
template <class E>
CLI::Option* add_choice(CLI::App& command, const std::string& name, E& value, const std::string& text) {
  const train::Choice choice(&value);
  std::vector<std::string> names;
  for (const std::string_view each : choice.names()) names.emplace_back(each);
  return command
      .add_option_function<std::string>(
          name, [choice](const std::string& given) { choice.set(given); }, text)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(choice.name()));
}

}  // namespace lockstep::tools
