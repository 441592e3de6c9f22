#include "lockstep/train/options/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iostream>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/config_file.h"
#include "lockstep/train/options/environment.h"
#include "lockstep/train/options/option_checks.h"
#include "lockstep/train/options/option_effects.h"
#include "lockstep/train/options/option_hints.h"
#include "lockstep/train/options/program_pages.h"

namespace lockstep::train {
namespace {

// Removes the "{false}" that CLI11 puts after the negative form of a flag.
struct Help : CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    const std::size_t mark = name.find("{false}");
    return mark == std::string::npos ? name : name.substr(0, mark);
  }
};

bool takes_numbers(const OptionValue& value) {
  return std::visit(
      []<class T>(const T&) {
        return std::is_same_v<T, std::vector<double>*> ||
               (std::is_pointer_v<T> && std::is_arithmetic_v<std::remove_pointer_t<T>> && !std::is_same_v<T, bool*>);
      },
      value);
}

// The type of the option's values in a --config file.
ConfigFile::Type file_type(const OptionRow& row) {
  using Type = ConfigFile::Type;
  if (std::holds_alternative<bool*>(row.value) || std::holds_alternative<Negated>(row.value)) return Type::Switch;
  return takes_numbers(row.value) ? Type::Number : Type::Text;
}

// Whether `word` is in `text`, and no part of a longer word.
bool has_word(std::string_view text, std::string_view word) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  const auto ends = [&](std::size_t at) { return at >= text.size() || kLetters.find(text[at]) == kLetters.npos; };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if ((at == 0 || ends(at - 1)) && ends(at + word.size())) return true;
  }
  return false;
}

// The values of an option: its range or its names, unless the text of the option has these already.
std::string values_text(const OptionRow& row) {
  if (takes_numbers(row.value)) return range_text(row);
  const std::vector<std::string> names = names_of(row);
  const bool said = std::ranges::all_of(names, [&](const std::string& name) { return has_word(row.text, name); });
  return said ? "" : fmt::format("one of {}", fmt::join(names, ", "));
}

std::string description(const OptionRow& row) {
  const std::string values = values_text(row);
  return fmt::format("{}{}{} (default {})", row.text, values.empty() ? "" : "; ", values, value_text(row));
}

// Adds one row to the command line.
struct AddOption {
  CLI::App& app;
  const OptionRow& row;
  std::vector<std::string>& unknown;  // errors about unknown enumeration names, reported after --help

  CLI::Option* operator()(bool* flag) const {
    const std::string negative = row.has_negative ? ",!--no-" + row.name : "";
    return app.add_flag("--" + row.name + negative, *flag, description(row));
  }
  CLI::Option* operator()(const Negated& flag) const {
    return app.add_flag_function(
        "--" + row.name, [flag](std::int64_t count) { *flag.variable = count <= 0; }, description(row));
  }
  CLI::Option* operator()(const Choice& choice) const {
    return from_text([choice, row = row, &unknown = unknown](const std::string& text) {
      if (!choice.set(text)) unknown.push_back(unknown_name(row, text));
    });
  }
  CLI::Option* operator()(std::filesystem::path* path) const {
    return from_text([path](const std::string& text) { *path = text; });
  }
  CLI::Option* operator()(std::vector<double>* numbers) const {
    return app.add_option("--" + row.name, *numbers, description(row))->delimiter(',')->type_name(argument_of(row));
  }
  // The last of several values counts, as job scripts that append "$@" expect.
  template <class T>
  CLI::Option* operator()(T* variable) const {
    CLI::Option* option = app.add_option("--" + row.name, *variable, description(row));
    option->take_last()->type_name(argument_of(row));
    if constexpr (std::is_integral_v<T>) option->check(whole_number<T>);
    if constexpr (std::is_floating_point_v<T>) option->check(any_number);
    return option;
  }

  template <class Take>
  CLI::Option* from_text(Take take) const {
    const auto callback = [take](const CLI::results_t& given) {
      take(given.back());
      return true;
    };
    return app.add_option("--" + row.name, callback, description(row))->take_last()->type_name(argument_of(row));
  }
};

}  // namespace

struct CommandLine::Parser {
  Options& options;
  data::Catalogue datasets;
  CLI::App app;
  std::shared_ptr<ConfigFile> file = std::make_shared<ConfigFile>(app);
  EnvironmentValues environment{app};
  std::vector<OptionRow> rows, own;
  std::vector<std::string> usual;  // the values of `rows` before parsing
  std::vector<std::function<void()>> checks;
  std::vector<std::string> unknown;
  std::string refused;  // the first option of the program's own that cannot be added

  Parser(Options& into, const std::string& name, const std::string& text, data::Catalogue sets)
      : options(into), datasets(sets), app(text, name) {}

  void add(const OptionRow& row, const std::string& heading) {
    CLI::Option* option = std::visit(AddOption{app, row, unknown}, row.value)->group(heading);
    file->declare(option, file_type(row));
  }
  // Its name may be one of the framework's, or none that an option can have.
  void add_own(OptionRow row) {
    try {
      add(row, "Model");
      own.push_back(std::move(row));
    } catch (const CLI::ConstructionError& error) {
      if (refused.empty())
        refused = fmt::format("--{} cannot be an option of the program's own: {}", row.name, error.what());
    }
  }
  void add_config() {
    app.config_formatter(file);
    app.set_config("--config", "", "read options from FILE, in TOML; the command line has priority (default none)")
        ->check([this](const std::string& path) { return file->look_at(path); })
        ->type_name("FILE")
        ->group("Run");
    app.allow_config_extras(CLI::config_extras_mode::error);
  }

  // As --help has it, with the names that options accept: CLI11 does not know them.
  ProgramDescription described() const {
    ProgramDescription description = describe(app);
    const auto complete = [&](const OptionRow& row) {
      for (OptionDescription& option : description.options) {
        if (std::ranges::find(option.names, "--" + row.name) == option.names.end()) continue;
        option.is_number = takes_numbers(row.value);
        if (!option.is_number && !option.argument.empty()) option.values = names_of(row);
      }
    };
    std::ranges::for_each(rows, complete);
    std::ranges::for_each(own, complete);
    return description;
  }

  // Parses; throws CLI11's exceptions and Error.
  void parse(int argc, const char* const* argv) {
    if (!refused.empty()) throw Error(fmt::format("[{}] {}", kOptionsSite, refused));
    const optim::Rule default_rule = options.optimizer.rule;
    app.parse(argc, argv);
    environment.apply(rows);
    options.from_environment = environment.variables();
    if (!unknown.empty()) throw Error(fmt::format("[{}] {}", kOptionsSite, unknown.front()));
    check_read(rows, usual, datasets, options.dataset.name);
    for (const auto& look : checks) look();
    for (const OptionRow& row : rows) refuse_empty_text(app, row);
    settle(app, options, default_rule);
    check_ranges(rows, options.precision);
    check_ranges(own, options.precision);
  }
};

CommandLine::CommandLine(Options& options, const std::string& name, const std::string& description,
                         const std::string& version, data::Catalogue datasets)
    : parser_(std::make_unique<Parser>(options, name, description, datasets)) {
  CLI::App& app = parser_->app;
  app.formatter(std::make_shared<Help>());
  app.get_formatter()->column_width(36);
  for (OptionGroup& group : option_groups(options)) {
    for (OptionRow& row : group.rows) {
      if (!is_for(row, datasets)) continue;
      if (row.name == "dataset" && !datasets.empty()) offer(datasets, row);
      parser_->add(row, group.heading);
      parser_->usual.push_back(value_text(row));
      parser_->rows.push_back(std::move(row));
    }
  }
  app.footer(
      "N is a whole number, decimal and without leading zeros (7, not 007); X a number; NAME one of the names that "
      "the\n"
      "text has.");
  parser_->add_config();
  app.set_version_flag("--version", version);
  offer_pages(app, version, [parser = parser_.get()] { return parser->described(); });
}

CommandLine::~CommandLine() = default;
void CommandLine::add(OptionRow row) { parser_->add_own(std::move(row)); }

const std::vector<OptionRow>& CommandLine::own() const { return parser_->own; }

void CommandLine::check(std::function<void()> look) { parser_->checks.push_back(std::move(look)); }

ParseResult CommandLine::parse(int argc, const char* const* argv, bool is_rank_zero) {
  return parse(argc, argv, is_rank_zero, std::cout, std::cerr);
}

ParseResult CommandLine::parse(int argc, const char* const* argv, bool is_rank_zero, std::ostream& out,
                               std::ostream& err) {
  CLI::App& app = parser_->app;
  ParseResult result{.proceed = false, .exit_code = 2, .message = {}};
  try {
    parser_->parse(argc, argv);
    return {};
  } catch (const CLI::Success& success) {  // --help, --version
    if (is_rank_zero) app.exit(success, out, err);
    return {.proceed = false, .exit_code = 0, .message = {}};
  } catch (const CLI::ParseError& error) {
    result.message = parser_->environment.located(parser_->file->located(explain(app, error)));
  } catch (const Error& error) {
    result.message = parser_->environment.located(parser_->file->located(error.what()));
  }
  if (is_rank_zero)
    err << fmt::format("{}: {}\nRun with --help for the options.\n", app.get_name(), printable(result.message))
        << std::flush;
  return result;
}

}  // namespace lockstep::train
