#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup tuning_rows(Options& o) {
  return {
      "Fine-tuning",
      {
          {.name = "replace-head",
           .value = option_value(o.tuning.replace_head),
           .text = "the model's last layer keeps its initial values when --weights is loaded, whatever the file has "
                   "for it; all other layers must fit"},
          {.name = "freeze",
           .value = option_value(o.tuning.freeze),
           .argument = "PATTERNS",
           .text = "parameters that are not trained, by name, with commas between patterns; * stands for any "
                   "characters, as in 'conv1.*,layer1.*'. A batch norm whose scale and shift are frozen keeps its "
                   "running statistics and normalises by them",
           .resume = Resume::Never,
           .reason = "the checkpoint has optimizer state of trained parameters alone"},
          {.name = "lr-scale",
           .value = option_value(o.tuning.lr_scale),
           .argument = "PATTERN=X",
           .text = "factors on the learning rate of parameters, with commas between them, as in 'layer4.*=0.1'; "
                   "the first pattern that matches a name counts",
           .resume = Resume::Never,
           .reason = "parameters would go on with other rates"},
          {.name = "no-decay",
           .value = option_value(o.tuning.no_decay),
           .argument = "PATTERNS",
           .text =
               "parameters without weight decay, by name, with commas between patterns, as in "
               "'*.pos_embedding,*.scale', in addition to those of --no-decay-norm-bias; rows of sparse tables have "
               "--table-weight-decay"},
      }};
}

OptionGroup trial_rows(Options& o) {
  return {
      "Trials",
      {
          {.name = "find-lr",
           .value = option_value(o.trial.find_lr),
           .text = "a learning-rate range test in place of a training: the rate grows from update to update until "
                   "the loss diverges; a table with a suggestion for --lr, and OUTPUT/find-lr/lr_find.csv and .json",
           .resume = Resume::Never,
           .reason = "a range test is a run of its own"},
          {.name = "find-lr-range",
           .value = option_value(o.trial.lr_range),
           .text = "first and last rate of --find-lr, with a comma between them",
           .above_low = true,
           .rises = true},
          {.name = "find-lr-steps",
           .value = option_value(o.trial.lr_steps),
           .text = "updates of --find-lr",
           .low = 10,
           .high = 1e6},
          {.name = "overfit-batches",
           .value = option_value(o.trial.overfit_batches),
           .text = "train and evaluate on the first N global batches alone, without shuffling and augmentation: a "
                   "model that can learn gets their loss down; 0: train on all data",
           .high = 1e9,
           .resume = Resume::Never,
           .reason = "the position in the epoch needs the same samples"},
      }};
}

}  // namespace lockstep::train
