#include "lockstep/train/options/program_description.h"

#include <CLI/Option.hpp>
#include <algorithm>
#include <string_view>

namespace lockstep::train {
namespace {

// The names between "{" and "}" of what CLI11 says of the type: "TEXT:{f32,f64}".
std::vector<std::string> listed_values(std::string_view type) {
  std::vector<std::string> values;
  const std::size_t from = type.find('{'), to = type.find('}');
  if (from == type.npos || to == type.npos || to < from) return values;
  std::string_view rest = type.substr(from + 1, to - from - 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (!rest.starts_with('*')) values.emplace_back(rest.substr(0, comma));  // "*.onnx" stands for files
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return values;
}

// The word for a value: the option's own, else one for the type that CLI11 names.
std::string argument_word(const std::string& type) {
  const std::string word = type.substr(0, type.find(':'));
  if (word == "TEXT" || word.empty()) return "VALUE";
  if (word == "INT" || word == "UINT") return "N";
  return word == "FLOAT" ? "X" : word;
}

OptionDescription describe(const CLI::Option& option) {
  OptionDescription described{.text = option.get_description(),
                              .group = option.get_group(),
                              .is_positional = option.get_positional(),
                              .is_required = option.get_required()};
  if (described.is_positional) described.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) return described;
  const std::string type = option.get_type_name();
  described.values = listed_values(type);
  described.argument = argument_word(type);
  described.is_number = described.argument == "N" || described.argument == "X";
  return described;
}

}  // namespace

ProgramDescription describe(const CLI::App& app) {
  ProgramDescription described{.name = app.get_name(), .text = app.get_description(), .footer = app.get_footer()};
  described.takes_command_line = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) described.options.push_back(describe(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    described.commands.push_back(describe(*command));
  return described;
}

}  // namespace lockstep::train
