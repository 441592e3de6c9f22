#include <limits>

#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup training_rows(Options& o) {
  return {
      "Training",
      {
          {.name = "epochs",
           .value = option_value(o.epochs),
           .argument = "N",
           .text = "passes over the training data; 0: until --max-steps"},
          {.name = "max-steps",
           .value = option_value(o.max_steps),
           .argument = "N",
           .text = "stop after N updates, where the learning-rate schedule ends too; 0: when the epochs are done"},
          {.name = "batch-size",
           .value = option_value(o.batch_size),
           .argument = "N",
           .text = "samples per rank and micro-batch; 0: --global-batch says",
           .high = 1e8},
          {.name = "global-batch",
           .value = option_value(o.global_batch),
           .argument = "N",
           .text = "samples per update over all ranks; 0: --batch-size times ranks times --accumulate",
           .high = 1e12},
          {.name = "remainder",
           .value = option_value(o.remainder),
           .argument = "WHAT",
           .text = "the last samples of an epoch, if they fill no global batch: keep (a smaller update) or drop"},
          {.name = "label-smoothing",
           .value = option_value(o.label_smoothing),
           .argument = "X",
           .text = "part of the target spread over all classes",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights},
          {.name = "seed",
           .value = option_value(o.seed),
           .argument = "N",
           .text = "of initial weights, order of samples, augmentation and dropout",
           .high = std::numeric_limits<double>::max(),
           .resume = Resume::SameInEpoch,
           .reason = "an epoch keeps its order of samples"},
          {.name = "weights",
           .value = option_value(o.weights),
           .argument = "FILE",
           .text = "start from these weights (a weights file or a checkpoint); a run that is resumed has its own"},
          {.name = "precision",
           .value = option_value(o.precision),
           .argument = "TYPE",
           .text =
               "f32, f64, or bf16: products, convolutions and the values between them in bf16, weights, sums and the "
               "optimizer in f32. A processor without bf16 instructions falls back to f32; bf16-emulated insists",
           .resume = Resume::SameWithShards,
           .reason = "kernels round otherwise"},
          {.name = "conv-math",
           .value = option_value(o.trainer.compile.kernels.conv_math),
           .argument = "WHAT",
           .text = "convolutions: fast (Winograd where it pays, rounding more) or exact (direct sums)",
           .resume = Resume::SameWithShards,
           .reason = "kernels round otherwise"},
          {.name = "recompute",
           .value = option_value(o.trainer.compile.recompute),
           .argument = "WHAT",
           .text = "what backward computes again instead of keeping it: none, norms (batch norm with ReLU: cheap), or "
                   "blocks (all within a residual block: a third more time, least memory)",
           .resume = Resume::SameWithShards,
           .reason = "other nodes are fused"},
          {.name = "autotune",
           .value = option_value(o.trainer.autotune),
           .text = "measure on rank 0 which kernel is fastest for each node, once for a processor and shape; bits "
                   "depend on the outcome"},
      }};
}

}  // namespace lockstep::train
