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
           .text = "passes over the training data; 0: train until --max-steps"},
          {.name = "max-steps",
           .value = option_value(o.max_steps),
           .text = "end after N updates, as does the learning-rate schedule; 0: end after --epochs"},
          {.name = "batch-size",
           .value = option_value(o.batch_size),
           .text = "samples per rank and micro-batch; 0: --global-batch determines it",
           .high = 1e8},
          {.name = "global-batch",
           .value = option_value(o.global_batch),
           .text = "samples per update over all ranks; 0: --batch-size times ranks times --accumulate",
           .high = 1e12},
          {.name = "remainder",
           .value = option_value(o.remainder),
           .text = "the last samples of an epoch that fill no global batch: keep (a smaller update) or drop"},
          {.name = "label-smoothing",
           .value = option_value(o.label_smoothing),
           .text = "fraction of the target that is spread over all classes",
           .high = 1,
           .below_high = true,
           .rounding = Rounding::ToWeights,
           .data = ForData::Labels},
          {.name = "seed",
           .value = option_value(o.seed),
           .text = "seed of initial weights, order of samples, augmentation and dropout",
           .high = std::numeric_limits<double>::max(),
           .resume = Resume::SameInEpoch,
           .reason = "an epoch keeps its order of samples"},
          {.name = "weights",
           .value = option_value(o.weights),
           .argument = "FILE",
           .text = "start from these weights (a weights file, a checkpoint, or a run's folder with its newest one); a "
                   "resumed run uses its checkpoint's"},
          {.name = "precision",
           .value = option_value(o.precision),
           .text =
               "f32, f64, or bf16: products, convolutions and the values between them in bf16, weights, sums and the "
               "optimizer in f32. A processor without bf16 instructions uses f32; bf16-emulated never does",
           .resume = Resume::SameWithShards,
           .reason = "kernels round otherwise"},
          {.name = "conv-math",
           .value = option_value(o.trainer.compile.kernels.conv_math),
           .text = "convolutions: fast (Winograd if it is faster, with larger rounding errors), accurate (Winograd on "
                   "tiles of 2 x 2 alone, with errors near those of direct sums) or exact (direct sums)",
           .resume = Resume::SameWithShards,
           .reason = "kernels round otherwise"},
          {.name = "bits",
           .value = option_value(o.trainer.compile.kernels.bits),
           .text =
               "fast: the fastest kernels; or portable: the same bits on every processor, with every compiler and MPI "
               "library, and any number of threads (with --shards also of ranks). Slower, f32 or f64"},
          {.name = "recompute",
           .value = option_value(o.trainer.compile.recompute),
           .text = "values that backward computes again instead of keeping them: none, norms (batch norm with ReLU: "
                   "cheap), or blocks (all values within a residual block: a third more time, least memory)",
           .resume = Resume::SameWithShards,
           .reason = "other nodes are fused"},
          {.name = "unused",
           .value = option_value(o.trainer.compile.unused),
           .text = "trainable parameters on which the loss does not depend: error (which names them) or ignore (they "
                   "keep their values)",
           .effect = Effect::None},
          {.name = "autotune",
           .value = option_value(o.trainer.autotune),
           .text = "rank 0 measures the fastest kernel of each node, once per processor and shape; bits depend on the "
                   "choices"},
      }};
}

}  // namespace lockstep::train
