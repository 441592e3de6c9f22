#include "lockstep/train/options/options.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/train/options/config_file.h"
#include "lockstep/train/options/option_checks.h"
#include "lockstep/train/options/option_hints.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

constexpr double kSgdRate = 0.1, kAdamRate = 0.001;

std::string default_text(const std::string& value) { return value.empty() ? "none" : value; }
std::string default_text(bool value) { return value ? "on" : "off"; }
std::string default_text(const std::vector<double>& value) {
  return value.empty() ? "none" : fmt::format("{}", fmt::join(value, ","));
}
template <class T>
std::string default_text(const T& value) {
  return fmt::format("{}", value);
}

// Without the "{false}" that CLI11 puts after the negative form of a flag.
struct Help : CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    const std::size_t mark = name.find("{false}");
    return mark == std::string::npos ? name : name.substr(0, mark);
  }
};

struct AddToApp {
  CLI::App& app;
  std::string heading{};

  void group(const char* name) { heading = name; }
  void operator()(const Field& field, bool& member) {
    // Only a flag that stands for a choice has a negative form.
    const std::string name = field.name;
    const std::string flags = name == "augment" ? "--augment,!--no-augment" : "--" + name;
    app.add_flag(flags, member, description(field, member))->group(heading);
  }
  template <class T>
  void operator()(const Field& field, T& member) {
    CLI::Option* option = app.add_option(fmt::format("--{}", field.name), member, description(field, member));
    option->group(heading)->type_name(field.value);
    // The last one counts, as job scripts that append "$@" expect.
    if constexpr (!std::is_same_v<T, std::vector<double>>) option->take_last();
    if constexpr (std::is_same_v<T, std::vector<double>>) option->delimiter(',');
    if constexpr (std::is_integral_v<T>) option->check(whole_number<T>);
    if constexpr (std::is_floating_point_v<T>) option->check(number);
  }
  template <class T>
  static std::string description(const Field& field, const T& member) {
    std::string range;
    if constexpr (!std::is_same_v<T, bool> && !std::is_same_v<T, std::string>) range = range_text(field);
    return fmt::format("{}{}{} (default {})", field.text, range.empty() ? "" : "; ", range, default_text(member));
  }
};

struct WriteJson {
  nlohmann::json& json;
  bool agreed_only;

  void group(const char*) {}
  template <class T>
  void operator()(const Field& field, const T& member) {
    if (!agreed_only || !field.per_node) json[field.name] = member;
  }
};

bool is_adam(const std::string& optimizer) { return optimizer != "sgd"; }

bool given(const CLI::App& app, const std::string& name) { return app.get_option("--" + name)->count() > 0; }

// An option that was given, and that the other options leave without effect, is more likely a mistake than a wish.
void require_effect(const CLI::App& app, bool effective, std::initializer_list<const char*> names,
                    const std::string& reason) {
  for (const char* name : names) {
    if (!effective && given(app, name)) throw CLI::ValidationError(fmt::format("--{}", name), reason);
  }
}

// What a shell makes of --resume "$LAST" where LAST is not set must not be taken for no option.
struct RefuseEmptyTexts {
  const CLI::App& app;
  void group(const char*) const {}
  template <class T>
  void operator()(const Field& field, const T& member) const {
    if constexpr (std::is_same_v<T, std::string>) {
      if (member.empty() && given(app, field.name))
        throw CLI::ValidationError(fmt::format("--{}", field.name),
                                   fmt::format("is empty, expected {}; leave the option out for none", field.value));
    }
  }
};

void settle(const CLI::App& app, Options& options, const std::string& default_optimizer) {
  visit_options(options, RefuseEmptyTexts{app});
  if (given(app, "global-batch") && options.global_batch > 0 && !given(app, "batch-size")) options.batch_size = 0;
  if (given(app, "batch-size") && options.batch_size > 0 && !given(app, "global-batch")) options.global_batch = 0;
  const bool adam = is_adam(options.optimizer);
  if (adam != is_adam(default_optimizer) && !given(app, "lr")) options.lr = adam ? kAdamRate : kSgdRate;

  require_effect(app, !adam, {"momentum", "nesterov"},
                 fmt::format("is for --optimizer sgd, and the optimizer is {}", options.optimizer));
  require_effect(app, adam, {"beta1", "beta2", "eps"},
                 fmt::format("is for --optimizer adam or adamw, and the optimizer is {}", options.optimizer));
  const auto with_schedule = [&](const std::string& name, std::initializer_list<const char*> names) {
    require_effect(app, options.schedule == name, names,
                   fmt::format("is for --schedule {}, and the schedule is {}", name, options.schedule));
  };
  with_schedule("cosine", {"min-lr"});
  with_schedule("step", {"step-epochs", "step-gamma", "milestones"});
  with_schedule("one-cycle", {"cycle-rise", "cycle-start", "cycle-end"});
  require_effect(app, !given(app, "milestones"), {"step-epochs"}, "contradicts --milestones, expected one of the two");
  require_effect(app, options.scale_lr, {"scale-lr-batch"}, "has no effect without --scale-lr");
}

// With file, line and key where a --config file is what is wrong.
std::string located(const CLI::App& app, const std::string& error) {
  const auto* file = dynamic_cast<const ConfigFile*>(app.get_config_formatter_base().get());
  return file == nullptr ? error : file->located(error);
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.formatter(std::make_shared<Help>());
  app.get_formatter()->column_width(36);
  visit_options(options, AddToApp{app});
  app.footer("Whole numbers are decimal, without leading zeros: 7, not 007.");
  const auto config = std::make_shared<ConfigFile>(app);
  app.config_formatter(config);
  app.set_config("--config", "", "read options from FILE, in TOML; the command line comes first (default none)")
      ->check([config](const std::string& path) { return config->look_at(path); })
      ->type_name("FILE")
      ->group("Run");
  app.allow_config_extras(CLI::config_extras_mode::error);
}

ParseResult parse(CLI::App& app, Options& options, int argc, const char* const* argv, bool is_rank_zero) {
  return parse(app, options, argc, argv, is_rank_zero, std::cout, std::cerr);
}

ParseResult parse(CLI::App& app, Options& options, int argc, const char* const* argv, bool is_rank_zero,
                  std::ostream& out, std::ostream& err) {
  const std::string default_optimizer = options.optimizer;
  ParseResult result{.proceed = false, .exit_code = 2, .message = {}};
  try {
    app.parse(argc, argv);
    settle(app, options, default_optimizer);
    check_ranges(options);
    return {};
  } catch (const CLI::Success& success) {  // --help, --version
    if (is_rank_zero) app.exit(success, out, err);
    return {.proceed = false, .exit_code = 0, .message = {}};
  } catch (const CLI::ParseError& error) {
    result.message = located(app, explain(app, error));
  } catch (const Error& error) {
    result.message = located(app, error.what());
  }
  if (is_rank_zero)
    err << fmt::format("{}: {}\nRun with --help for the options.\n", app.get_name(), printable(result.message))
        << std::flush;
  return result;
}

// Paths need not be UTF-8.
static std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_json(const Options& options) {
  nlohmann::json json = nlohmann::json::object();
  visit_options(options, WriteJson{json, false});
  return text_of(json);
}

std::string canonical(const Options& options, std::string_view program) {
  nlohmann::json json = nlohmann::json::object();
  visit_options(options, WriteJson{json, true});
  json.update(nlohmann::json::parse(program));
  return text_of(json);
}

std::vector<std::string> differences(std::string_view canonical_there, std::string_view canonical_here,
                                     std::string_view there, std::string_view here) {
  const nlohmann::json left = nlohmann::json::parse(canonical_there);
  const nlohmann::json right = nlohmann::json::parse(canonical_here);
  nlohmann::json keys = left;
  keys.update(right);
  const auto text = [](const nlohmann::json& json, const std::string& key) {
    return json.contains(key) ? json.at(key).dump() : "not an option";
  };
  std::vector<std::string> lines;
  for (const auto& item : keys.items()) {
    const std::string a = text(left, item.key()), b = text(right, item.key());
    if (a != b) lines.push_back(fmt::format("--{}: {} {}, {} {}", item.key(), a, there, b, here));
  }
  return lines;
}

}  // namespace lockstep::train
