#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup data_rows(Options& o) {
  return {"Data",
          {
              {.name = "dataset",
               .value = option_value(o.dataset.name),
               .argument = "NAME",
               .text = "name of the data set",
               .resume = Resume::SameSamples,
               .shapes_model = true},
              {.name = "data-dir",
               .value = option_value(o.dataset.dir),
               .argument = "DIR",
               .text = "folder of the data set's files",
               .per_node = true},
              {.name = "augment",
               .value = option_value(o.augment),
               .text = "random crops and flips in training",
               .has_negative = true},
              {.name = "limit-train",
               .value = option_value(o.dataset.limit_train),
               .argument = "N",
               .text = "train on the first N samples; 0: all",
               .resume = Resume::SameSamples},
              {.name = "limit-eval",
               .value = option_value(o.dataset.limit_eval),
               .argument = "N",
               .text = "evaluate on the first N samples; 0: all (of synthetic, 128)",
               .effect = Effect::Order},
          }};
}

}  // namespace lockstep::train
