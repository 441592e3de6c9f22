#include "lockstep/train/options/option_effects.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

#include "lockstep/optim/rule_table.h"
#include "lockstep/train/options/choices.h"

namespace lockstep::train {
namespace {

bool given(const CLI::App& app, const std::string& name) { return app.get_option("--" + name)->count() > 0; }

// Refuses a given option that has no effect beside the other options: it is probably a mistake.
void require_effect(const CLI::App& app, bool effective, std::initializer_list<const char*> names,
                    const std::string& reason) {
  for (const char* name : names) {
    if (!effective && given(app, name)) throw CLI::ValidationError(fmt::format("--{}", name), reason);
  }
}

// If the command line changes the optimizer, sets that optimizer's usual rate and coefficients.
void settle_rule(const CLI::App& app, Options& options, const optim::RuleEntry& rule, const optim::RuleEntry& usual) {
  if (rule.rate != usual.rate && !given(app, "lr")) options.rate.peak = rule.rate;
  if (rule.momentum != usual.momentum && !given(app, "momentum")) options.optimizer.sgd.momentum = rule.momentum;
  if (rule.beta2 != usual.beta2 && !given(app, "beta2")) options.optimizer.adam.beta2 = rule.beta2;
  if (rule.epsilon != usual.epsilon && !given(app, "eps")) options.optimizer.adam.epsilon = rule.epsilon;
  for (const optim::RuleEntry& entry : optim::kRules) {
    for (const std::string_view option : entry.options) {
      require_effect(
          app, option.empty() || rule.reads(option), {option.data()},
          fmt::format("is for --optimizer {}, and the optimizer is {}", optim::rule_names(option), rule.name));
    }
  }
}

// The same for options of a run, each of which needs another one.
void require_effects_of_run(const CLI::App& app, const Options& o) {
  const parallel::GradientGuardOptions& limits = o.trainer.guards.gradient;
  // --abort-timeout 0 turns off what --stall-timeout 0 turns off, too: no mistake.
  require_effect(app, o.stall.report > 0 || o.stall.abort == 0, {"abort-timeout"},
                 "has no effect with --stall-timeout 0, which starts no watchdog");
  require_effect(app, o.patience.evaluations > 0, {"patience-metric"}, "has no effect without --patience");
  require_effect(app, !o.trace.file.empty(), {"trace-steps"}, "has no effect without --trace");
  require_effect(app, limits.norm > 0 || limits.spike > 0, {"guard-warn"},
                 "has no effect without --guard-norm or --guard-spike");
  require_effect(app, o.log_every > 0 || !o.logging.rank_loss, {"log-rank-loss"}, "has no effect with --log-every 0");
  require_effect(app, o.time.limit != "none", {"time-margin"}, "has no effect with --time-limit none");
  require_effect(app, o.trainer.tables.shard, {"table-placement"}, "has no effect without --shard-tables");
}

}  // namespace

void refuse_empty_text(const CLI::App& app, const OptionRow& row) {
  const auto* text = std::get_if<std::string*>(&row.value);
  const auto* path = std::get_if<std::filesystem::path*>(&row.value);
  const bool empty = (text != nullptr && (*text)->empty()) || (path != nullptr && (*path)->empty());
  if (empty && given(app, row.name))
    throw CLI::ValidationError(fmt::format("--{}", row.name),
                               fmt::format("is empty, expected {}; omit the option for none", argument_of(row)));
}

void settle(const CLI::App& app, Options& options, optim::Rule default_rule) {
  using Kind = optim::ScheduleOptions::Kind;
  if (given(app, "global-batch") && options.global_batch > 0 && !given(app, "batch-size")) options.batch_size = 0;
  if (given(app, "batch-size") && options.batch_size > 0 && !given(app, "global-batch")) options.global_batch = 0;
  settle_rule(app, options, optim::entry_of(options.optimizer.rule), optim::entry_of(default_rule));
  if (!given(app, "warmup-epochs") && options.rate.kind == Kind::OneCycle) options.rate.warmup_epochs = 0;
  if (!given(app, "warmup-epochs") && options.epochs > 0 &&
      options.rate.warmup_epochs > static_cast<double>(options.epochs))
    options.usual_warm_up = std::exchange(options.rate.warmup_epochs, static_cast<double>(options.epochs));
  const auto with_schedule = [&](Kind kind, std::initializer_list<const char*> names) {
    require_effect(
        app, options.rate.kind == kind, names,
        fmt::format("is for --schedule {}, and the schedule is {}", choice_name(kind), choice_name(options.rate.kind)));
  };
  require_effect(
      app, options.rate.has_minimum(), {"min-lr"},
      fmt::format("is for --schedule cosine, cosine-restarts, polynomial and plateau, and the schedule is {}",
                  choice_name(options.rate.kind)));
  with_schedule(Kind::Step, {"step-epochs", "step-gamma", "milestones"});
  with_schedule(Kind::OneCycle, {"cycle-rise", "cycle-start", "cycle-end"});
  with_schedule(Kind::CosineRestarts, {"restart-epochs", "restart-growth"});
  with_schedule(Kind::Polynomial, {"power"});
  with_schedule(Kind::Exponential, {"gamma"});
  with_schedule(Kind::InverseSqrt, {"timescale"});
  with_schedule(Kind::Plateau, {"plateau-factor", "plateau-patience", "plateau-threshold", "plateau-cooldown"});
  require_effect(app, !given(app, "milestones"), {"step-epochs"}, "contradicts --milestones, expected one of the two");
  require_effect(app, options.rate.warmup_epochs > 0, {"warmup-start"}, "has no effect without --warmup-epochs");
  require_effect(app, options.rate.scaled, {"scale-lr-batch"}, "has no effect without --scale-lr");
  require_effects_of_run(app, options);
}

}  // namespace lockstep::train
