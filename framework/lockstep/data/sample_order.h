// The samples of an epoch that does not have each sample once: weighted sampling, mixtures of sets, balanced classes.
// The order is a function of (seed, epoch) alone, so it is the same on all ranks and at any number of ranks. Immutable:
// any thread may call it. DistributedSampler takes one in SamplerOptions::order.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

class SampleOrder {
 public:
  virtual ~SampleOrder() = default;
  virtual std::int64_t samples() const = 0;  // of the data set
  virtual std::int64_t length() const = 0;   // samples of an epoch; a sample may be there several times, or not at all
  // The samples of an epoch in their order: length() indices below samples().
  virtual std::vector<std::int64_t> indices(std::uint64_t seed, std::int64_t epoch) const = 0;
};

// Takes each sample in proportion to its weight by systematic sampling (Madow and Madow (1944)), in a random order: of
// L samples, one with weight w is there floor or ceil of L * w / sum times, with that mean over the epochs. So an epoch
// varies less than one of independent draws (torch.utils.data.WeightedRandomSampler), and has the same expectation.
class WeightedOrder : public SampleOrder {
 public:
  // One weight per sample; `length` 0: as many as there are samples. Throws Error for a negative or infinite weight,
  // for weights that sum to 0 or infinity, and a negative length.
  explicit WeightedOrder(std::vector<double> weights, std::int64_t length = 0);

  std::int64_t samples() const override { return static_cast<std::int64_t>(weights_.size()); }
  std::int64_t length() const override { return length_; }
  std::vector<std::int64_t> indices(std::uint64_t seed, std::int64_t epoch) const override;

 private:
  std::vector<double> weights_;
  std::int64_t length_;
};

// The weights of a concatenation of sets of these sizes (ConcatDataset::sizes()) from which set i is taken with
// probability weights[i] / sum, and its samples equally. Throws Error unless there is a weight that is not negative for
// each set, and for a set without samples whose weight is not 0.
std::vector<double> mixture_weights(const std::vector<std::int64_t>& sizes, const std::vector<double>& weights);

// Weights with which all classes that occur are taken equally: 1 / (samples of the class). Throws Error for an empty
// list.
std::vector<double> balanced_weights(const std::vector<std::int32_t>& labels);
// Reads one scalar field of integers of samples [part.begin, part.end), all without a part. Throws Error for another
// field, and a number that is no i32.
std::vector<std::int32_t> labels_of(const Dataset& dataset, std::string_view field = "label",
                                    std::optional<Range> part = {});

}  // namespace lockstep::data
