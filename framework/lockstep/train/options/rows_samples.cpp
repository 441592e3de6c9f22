// Options for the samples of any data set.
#include <limits>

#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::max();

}  // namespace

OptionGroup sample_rows(Options& o) {
  data::SampleOptions& samples = o.dataset.samples;
  return {
      "Samples",
      {
          {.name = "train-subset",
           .value = option_value(samples.train_subset),
           .argument = "FILE",
           .text = "train on the samples whose indices FILE has, one per line, from 0 on",
           .resume = Resume::SameSamples},
          {.name = "eval-subset",
           .value = option_value(samples.eval_subset),
           .argument = "FILE",
           .text = "evaluate on the samples whose indices FILE has; of arrays without --eval-files, indices of the "
                   "samples in --files, in place of --eval-fraction",
           .effect = Effect::Order},
          {.name = "limit-train",
           .value = option_value(o.dataset.limit_train),
           .text = "train on the first N samples; 0: all",
           .resume = Resume::SameSamples},
          {.name = "limit-eval",
           .value = option_value(o.dataset.limit_eval),
           .text = "evaluate on the first N samples; 0: all (of synthetic, 128)",
           .effect = Effect::Order},
          {.name = "unreadable",
           .value = option_value(samples.unreadable),
           .text = "samples that cannot be read: stop the run, or replace each by the next one that can be read, with "
                   "a warning"},
          {.name = "cache-mb",
           .value = option_value(samples.cache_mb),
           .text = "MiB of decoded samples that each rank keeps in memory for later epochs; 0: none",
           .high = 1e9},
          {.name = "store",
           .value = option_value(samples.store),
           .text = "hold the training samples in the memory of all ranks together, each on one rank, and exchange "
                   "those of the next steps: each file is read once",
           .effect = Effect::None},
          {.name = "balanced",
           .value = option_value(samples.balanced),
           .text = "each class equally often in an epoch, whatever its number of samples",
           .resume = Resume::SameInEpoch,
           .reason = "an epoch keeps its order of samples"},
          {.name = "sample-weights",
           .value = option_value(samples.weights),
           .argument = "FILE",
           .text = "samples are in an epoch in proportion to their weights in FILE, one per line, for each sample of "
                   "the data set",
           .resume = Resume::SameInEpoch,
           .reason = "an epoch keeps its order of samples"},
          {.name = "shuffle-block",
           .value = option_value(samples.shuffle_block),
           .text =
               "shuffle blocks of N neighbouring samples, which are read in sequence, for records on slow disks; 1: "
               "single samples",
           .low = 1,
           .high = 1e9,
           .resume = Resume::SameInEpoch,
           .reason = "an epoch keeps its order of samples"},
          {.name = "mean",
           .value = option_value(o.dataset.mean),
           .text = "means by which samples are normalised, with commas between them. Of fields, with --normalise "
                   "standard or log: one for each channel of the inputs, then of targets that are numbers, in place of "
                   "measured ones. Of images: one, or one per channel, of pixels in [0, 1], in place of --mean-std",
           .low = -kAnyNumber,
           .high = kAnyNumber,
           .resume = Resume::Never,
           .reason = "the model sees other numbers",
           .data = ForData::FieldsAndImageSets},
          {.name = "std",
           .value = option_value(o.dataset.stddev),
           .text = "standard deviations by which samples are normalised, as --mean",
           .high = kAnyNumber,
           .above_low = true,
           .resume = Resume::Never,
           .reason = "the model sees other numbers",
           .data = ForData::FieldsAndImageSets},
          {.name = "noise",
           .value = option_value(o.dataset.noise),
           .text = "in training, add normal noise of this standard deviation to the normalised inputs or images",
           .data = ForData::FieldsAndImageSets},
      }};
}

}  // namespace lockstep::train
