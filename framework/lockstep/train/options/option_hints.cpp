#include "lockstep/train/options/option_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/train/options/near_names.h"

namespace lockstep::train {
namespace {

// Names of options in other frameworks.
struct Alias {
  std::string_view name, ours;
};
constexpr std::array kAliases{Alias{"learning-rate", "lr"},
                              Alias{"workers", "loaders"},
                              Alias{"num-workers", "loaders"},
                              Alias{"wd", "weight-decay"},
                              Alias{"lr-warmup-epochs", "warmup-epochs"},
                              Alias{"lr-warmup-decay", "warmup-start"}};

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// Returns the unknown options and arguments, in the order of the command line. An argument after an unknown option is
// its value.
std::vector<std::string> not_expected(const CLI::App& app) {
  std::vector<std::string> found;
  for (const CLI::App* command : app.get_subcommands()) {
    for (std::string& text : not_expected(*command)) found.push_back(std::move(text));
  }
  bool after_option = false;
  for (const std::string& argument : app.remaining()) {
    if (argument == "--") continue;
    const bool option = argument.size() > 1 && argument.front() == '-';
    if (option) {
      const std::string shown = argument.substr(0, argument.find('='));
      const std::size_t dashes = std::min(shown.find_first_not_of('-'), shown.size());
      const auto meant = similar_options(app, std::string_view(shown).substr(dashes));
      found.push_back(fmt::format("unknown option {}{}", shown,
                                  meant.empty() ? "" : fmt::format(", did you mean --{}?", fmt::join(meant, ", --"))));
    } else if (!after_option) {
      found.push_back(fmt::format("unexpected argument '{}'", argument));
    }
    after_option = option && argument.find('=') == argument.npos;
  }
  return found;
}

// Rewrites CLI11's message for an option without a check of its own, "Could not convert: --depth = many".
std::string not_converted(const CLI::App& app, const std::string& text) {
  constexpr std::string_view kHead = "Could not convert: ", kBetween = " = ";
  const std::size_t between = text.find(kBetween);
  if (!text.starts_with(kHead) || between == text.npos) return text;
  const std::string name = text.substr(kHead.size(), between - kHead.size());
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return text;
  const std::string type = option->get_type_name();
  const std::string expected = type == "INT" || type == "UINT" ? "a whole number" : type == "FLOAT" ? "a number" : type;
  return fmt::format("{}: is {}, expected {}", name, text.substr(between + kBetween.size()),
                     expected.empty() ? "another value" : expected);
}

}  // namespace

std::vector<std::string> similar_options(const CLI::App& app, std::string_view name) {
  constexpr std::size_t kMostShown = 3;
  if (name.empty() || name.size() > kLongestName) return {};
  const std::string wanted = normal_form(name);
  const std::vector<std::string> names = names_of(app);
  if (const auto alias = std::ranges::find(kAliases, wanted, &Alias::name);
      alias != kAliases.end() && std::ranges::find(names, alias->ours) != names.end())
    return {std::string(alias->ours)};
  if (const std::string nearest = nearest_name(wanted, names); !nearest.empty()) return {nearest};
  std::vector<std::string> longer;
  for (const std::string& candidate : names) {
    if (candidate.starts_with(wanted + "-")) longer.push_back(candidate);
  }
  if (longer.size() > kMostShown) longer.resize(kMostShown);
  return longer;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return not_converted(app, error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return error.what();
  const std::vector<std::string> found = not_expected(app);
  return found.empty() ? error.what() : fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace lockstep::train
