#include <fmt/format.h>

#include "lockstep/optim/rule_table.h"
#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

// The defaults of the rules, "sgd 0.1, adam 0.001"; of those that read `option`, or of all if it is empty.
std::string usual(double optim::RuleEntry::*value, std::string_view option = {}) {
  std::string text;
  for (const optim::RuleEntry& entry : optim::kRules) {
    if (option.empty() || entry.reads(option))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry.name, entry.*value);
  }
  return text;
}

std::string of_rules(std::string_view text, std::string_view option) {
  return fmt::format("{} of {}", text, optim::rule_names(option, ", "));
}

}  // namespace

OptionGroup optimiser_rows(Options& o) {
  return {
      "Optimiser",
      {
          {.name = "optimizer",
           .value = option_value(o.optimizer.rule),
           .text = optim::rule_names({}, ", "),
           .resume = Resume::Never},
          {.name = "lr",
           .value = option_value(o.rate.peak),
           .text = "peak learning rate per update; other optimizers than the default have their own: " +
                   usual(&optim::RuleEntry::rate),
           .above_low = true,
           .rounding = Rounding::ToWeights},
          {.name = "momentum",
           .value = option_value(o.optimizer.sgd.momentum),
           .text = "momentum; other optimizers than the default have their own: " +
                   usual(&optim::RuleEntry::momentum, "momentum"),
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "nesterov", .value = option_value(o.optimizer.sgd.nesterov), .text = "Nesterov's momentum in sgd"},
          {.name = "weight-decay",
           .value = option_value(o.trainer.update.weight_decay),
           .text = "L2 coefficient; with adamw and lion: decoupled decay per unit of the learning rate",
           .rounding = Rounding::ToWeights},
          {.name = "no-decay-norm-bias",
           .value = Negated{&o.trainer.update.decay_biases_and_norms},
           .text = "no weight decay for biases and norm parameters"},
          {.name = "table-optimizer",
           .value = option_value(o.trainer.tables.rules.all.rule),
           .text = "rule of the rows of sparse tables, of which a step updates those that it used: sgd, adagrad, "
                   "rowwise-adagrad (one number per row), adam (as torch.optim.SparseAdam), ftrl",
           .resume = Resume::Never,
           .reason = "each rule has its own state of the rows"},
          {.name = "table-rate-scale",
           .value = option_value(o.trainer.tables.rules.all.rate_scale),
           .text = "factor of the learning rate for sparse tables",
           .rounding = Rounding::ToWeights},
          {.name = "table-weight-decay",
           .value = option_value(o.trainer.tables.rules.all.weight_decay),
           .text = "L2 coefficient of the rows of sparse tables that a step used",
           .rounding = Rounding::ToWeights},
          {.name = "beta1",
           .value = option_value(o.optimizer.adam.beta1),
           .text = of_rules("decay of the first moment", "beta1"),
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "beta2",
           .value = option_value(o.optimizer.adam.beta2),
           .text = of_rules("decay of the second moment", "beta2") + "; lion's default is 0.99",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "alpha",
           .value = option_value(o.optimizer.rmsprop.alpha),
           .text = "decay of rmsprop's second moment",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "centered",
           .value = option_value(o.optimizer.rmsprop.centered),
           .text = "rmsprop divides by the gradient's deviation, not by its root mean square"},
          {.name = "eps",
           .value = option_value(o.optimizer.adam.epsilon),
           .text = "added to the denominator; other optimizers than the default have their own: " +
                   usual(&optim::RuleEntry::epsilon, "eps"),
           .above_low = true,
           .rounding = Rounding::ToWeights},
          {.name = "trust-coefficient",
           .value = option_value(o.optimizer.trust_coefficient),
           .text = "lars: factor of each parameter's rate, times the norm of its values by that of its gradient",
           .above_low = true,
           .rounding = Rounding::ToWeights},
          {.name = "clip-value",
           .value = option_value(o.trainer.update.clip_value),
           .text = "largest absolute value of an element of the gradient, after clipping by norms; 0: any",
           .rounding = Rounding::ToWeights},
          {.name = "clip-layer-norm",
           .value = option_value(o.trainer.update.clip_layer_norm),
           .text = "largest norm of the gradient of each parameter, after --clip-norm; 0: any",
           .rounding = Rounding::ToWeights},
          {.name = "ema",
           .value = option_value(o.trainer.average.ema),
           .text = "evaluate and export a moving average of the weights, which keeps this part of itself in each "
                   "update, such as 0.999; 0: none",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights,
           .resume = Resume::Never,
           .reason = "the average is a mean over all updates"},
          {.name = "swa-start",
           .value = option_value(o.trainer.average.swa_start),
           .text = "evaluate and export the mean of the weights at the ends of this epoch, from 1, and of all later "
                   "ones; 0: none",
           .resume = Resume::Never,
           .reason = "the mean is over the epochs from --swa-start on"},
          {.name = "noise-scale",
           .value = option_value(o.trainer.noise_scale),
           .text = "log the gradient noise scale, in samples: about the largest batch that pays",
           .effect = Effect::None},
      }};
}

OptionGroup rate_rows(Options& o) {
  return {
      "Learning rate",
      {
          {.name = "schedule",
           .value = option_value(o.rate.kind),
           .text = "constant; step; cosine, one-cycle or polynomial, over the whole run; cosine-restarts; "
                   "exponential; inverse-sqrt; plateau, which lowers the rate when evaluations become no better"},
          {.name = "warmup-epochs",
           .value = option_value(o.rate.warmup_epochs),
           .text = "epochs in which the rate rises linearly to --lr; none with one-cycle, which rises by itself"},
          {.name = "warmup-start",
           .value = option_value(o.rate.warmup_start),
           .text = "rate at the start of --warmup-epochs, as a fraction of the rate",
           .high = 1,
           .above_low = true},
          {.name = "min-lr",
           .value = option_value(o.rate.minimum),
           .text = "learning rate at which cosine, each of cosine-restarts and polynomial end; least rate of plateau",
           .rounding = Rounding::ToWeights},
          {.name = "step-epochs",
           .value = option_value(o.rate.step_epochs),
           .text = "epochs between two steps of the rate",
           .above_low = true},
          {.name = "step-gamma",
           .value = option_value(o.rate.step_gamma),
           .text = "factor of each step of the rate",
           .above_low = true},
          {.name = "milestones",
           .value = option_value(o.rate.milestones),
           .text = "epochs at which the rate steps, separated by commas, instead of --step-epochs",
           .above_low = true,
           .rises = true},
          {.name = "cycle-rise",
           .value = option_value(o.rate.cycle_rise),
           .text = "fraction of the run in which one-cycle rises",
           .high = 1,
           .above_low = true,
           .below_high = true},
          {.name = "cycle-start",
           .value = option_value(o.rate.cycle_start),
           .text = "one-cycle starts at --lr divided by X",
           .low = 1},
          {.name = "cycle-end",
           .value = option_value(o.rate.cycle_end),
           .text = "one-cycle ends at its start divided by X",
           .low = 1},
          {.name = "restart-epochs",
           .value = option_value(o.rate.restart_epochs),
           .text = "epochs of the first cosine of cosine-restarts",
           .above_low = true},
          {.name = "restart-growth",
           .value = option_value(o.rate.restart_growth),
           .text = "length of each further cosine of cosine-restarts, as a factor of the one before",
           .low = 1},
          {.name = "power",
           .value = option_value(o.rate.power),
           .text = "exponent of polynomial; 1: a straight line",
           .above_low = true},
          {.name = "gamma",
           .value = option_value(o.rate.gamma),
           .text = "factor of exponential on the rate in each epoch",
           .above_low = true},
          {.name = "timescale",
           .value = option_value(o.rate.timescale),
           .text = "epochs after which inverse-sqrt begins to fall; 0: --warmup-epochs, or 1 without warm-up"},
          {.name = "plateau-factor",
           .value = option_value(o.rate.plateau.factor),
           .text = "factor on the rate each time that plateau lowers it",
           .high = 1,
           .above_low = true,
           .below_high = true},
          {.name = "plateau-patience",
           .value = option_value(o.rate.plateau.patience),
           .text = "evaluations in a row without a lower loss after which plateau still waits; one more lowers the "
                   "rate"},
          {.name = "plateau-threshold",
           .value = option_value(o.rate.plateau.threshold),
           .text = "part of the lowest loss by which a loss must be lower, for plateau",
           .high = 1,
           .below_high = true},
          {.name = "plateau-cooldown",
           .value = option_value(o.rate.plateau.cooldown),
           .text = "evaluations that plateau does not count after it has lowered the rate"},
          {.name = "scale-lr",
           .value = option_value(o.rate.scaled),
           .text = "multiply --lr by global batch / --scale-lr-batch"},
          {.name = "scale-lr-batch",
           .value = option_value(o.rate.scale_batch),
           .text = "samples per update that --lr is meant for",
           .low = 1},
      }};
}

}  // namespace lockstep::train
