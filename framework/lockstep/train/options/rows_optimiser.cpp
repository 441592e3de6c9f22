#include <fmt/format.h>

#include "lockstep/optim/rule_table.h"
#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

std::string usual_rates() {
  std::string text;
  for (const optim::RuleEntry& entry : optim::kRules)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry.name, entry.rate);
  return text;
}

}  // namespace

OptionGroup optimiser_rows(Options& o) {
  return {
      "Optimiser",
      {
          {.name = "optimizer",
           .value = option_value(o.optimizer.rule),
           .argument = "NAME",
           .text = optim::rule_names({}, ", "),
           .resume = Resume::Never},
          {.name = "lr",
           .value = option_value(o.rate.peak),
           .argument = "X",
           .text = "peak learning rate per update; other optimizers than the default have their own: " + usual_rates(),
           .above_low = true,
           .rounding = Rounding::ToWeights},
          {.name = "momentum",
           .value = option_value(o.optimizer.sgd.momentum),
           .argument = "X",
           .text = "momentum of sgd and rmsprop; other optimizers than the default have their own: sgd 0.9, rmsprop 0",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "nesterov", .value = option_value(o.optimizer.sgd.nesterov), .text = "Nesterov's momentum in sgd"},
          {.name = "weight-decay",
           .value = option_value(o.trainer.update.weight_decay),
           .argument = "X",
           .text = "L2 coefficient; with adamw: decoupled decay per unit of the learning rate",
           .rounding = Rounding::ToWeights},
          {.name = "no-decay-norm-bias",
           .value = Negated{&o.trainer.update.decay_biases_and_norms},
           .text = "no weight decay for biases and norm parameters"},
          {.name = "beta1",
           .value = option_value(o.optimizer.adam.beta1),
           .argument = "X",
           .text = "decay of adam's first moment",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "beta2",
           .value = option_value(o.optimizer.adam.beta2),
           .argument = "X",
           .text = "decay of adam's second moment",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "alpha",
           .value = option_value(o.optimizer.rmsprop.alpha),
           .argument = "X",
           .text = "decay of rmsprop's second moment",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "centered",
           .value = option_value(o.optimizer.rmsprop.centered),
           .text = "rmsprop divides by the gradient's deviation, not by its root mean square"},
          {.name = "eps",
           .value = option_value(o.optimizer.adam.epsilon),
           .argument = "X",
           .text = "added to the root of adam's or rmsprop's second moment",
           .above_low = true,
           .rounding = Rounding::ToWeights},
      }};
}

OptionGroup rate_rows(Options& o) {
  return {"Learning rate",
          {
              {.name = "schedule",
               .value = option_value(o.rate.kind),
               .argument = "NAME",
               .text = "constant, step, cosine or one-cycle, over the whole run"},
              {.name = "warmup-epochs",
               .value = option_value(o.rate.warmup_epochs),
               .argument = "X",
               .text = "epochs in which the rate rises linearly to --lr"},
              {.name = "warmup-start",
               .value = option_value(o.rate.warmup_start),
               .argument = "X",
               .text = "rate at the start of --warmup-epochs, as a fraction of the rate",
               .high = 1,
               .above_low = true},
              {.name = "min-lr",
               .value = option_value(o.rate.minimum),
               .argument = "X",
               .text = "learning rate at which cosine ends",
               .rounding = Rounding::ToWeights},
              {.name = "step-epochs",
               .value = option_value(o.rate.step_epochs),
               .argument = "X",
               .text = "epochs between two steps of the rate",
               .above_low = true},
              {.name = "step-gamma",
               .value = option_value(o.rate.step_gamma),
               .argument = "X",
               .text = "factor of each step of the rate",
               .above_low = true},
              {.name = "milestones",
               .value = option_value(o.rate.milestones),
               .argument = "X",
               .text = "epochs at which the rate steps, separated by commas, instead of --step-epochs",
               .above_low = true},
              {.name = "cycle-rise",
               .value = option_value(o.rate.cycle_rise),
               .argument = "X",
               .text = "fraction of the run in which one-cycle rises",
               .high = 1,
               .above_low = true,
               .below_high = true},
              {.name = "cycle-start",
               .value = option_value(o.rate.cycle_start),
               .argument = "X",
               .text = "one-cycle starts at --lr divided by X",
               .low = 1},
              {.name = "cycle-end",
               .value = option_value(o.rate.cycle_end),
               .argument = "X",
               .text = "one-cycle ends at its start divided by X",
               .low = 1},
              {.name = "scale-lr",
               .value = option_value(o.rate.scaled),
               .text = "multiply --lr by global batch / --scale-lr-batch"},
              {.name = "scale-lr-batch",
               .value = option_value(o.rate.scale_batch),
               .argument = "N",
               .text = "samples per update that --lr is meant for",
               .low = 1},
          }};
}

}  // namespace lockstep::train
