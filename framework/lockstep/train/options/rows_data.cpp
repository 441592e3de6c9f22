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
               .text = "folder of the data set's files; from LOCKSTEP_DATA_DIR unless given",
               .per_node = true,
               .variable = "LOCKSTEP_DATA_DIR"},
              {.name = "augment",
               .value = option_value(o.augment),
               .text = "random crops and flips in training",
               .has_negative = true},
              {.name = "resize",
               .value = option_value(o.resize),
               .argument = "N",
               .text = "scale images so that their shorter side has N pixels (bilinear), in training and evaluation; "
                       "0: as in the data set",
               .high = 4096,
               .resume = Resume::Never,
               .reason = "images of another size are other samples",
               .shapes_model = true},
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
