// Clicks that are drawn from a stated model, so the best possible result is known; nothing is downloaded. Sample i is a
// function of (seed, split, i) alone:
//
//   id of field f      the r-th most frequent of `ids` ones, r from 0, with probability (r + 1)^-s / sum over r (Zipf)
//   dense numbers x_d  normal, mean 0 and variance 1
//   score              bias + sum_d u_d x_d + sum_f w_f(id) + sum_{f < g} v_f(id) . v_g(id)
//   label              1 with probability 1 / (1 + e^-score), else 0
//
// u, w and v are normal numbers of (seed, field, id): a factorisation machine (Rendle, "Factorization machines", 2010).
// No classifier has a larger expected AUC than the score itself. Immutable: any thread may read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

struct SyntheticClicksOptions {
  std::int64_t samples = 100000;
  std::int64_t dense = 4, fields = 8;
  std::int64_t ids = 100;                  // of each field
  std::int64_t latent = 4;                 // elements of v
  double exponent = 1.05;                  // s
  double bias = -1;                        // of the score
  double linear = 0.3;                     // standard deviation of u and w
  double pairs = 1;                        // standard deviation of the sum over pairs
  bool wide = false;                       // ids are 63-bit hashes in place of 0 to ids - 1
  std::uint64_t seed = 1;                  // of the model
  data::Split split = data::Split::Train;  // the samples of both splits differ, the model is the same
};

// Fields: "dense" F32 (dense), unless there are none; "ids" I64 (fields); "label" F32 ().
class SyntheticClicks : public data::Dataset {
 public:
  explicit SyntheticClicks(SyntheticClicksOptions options);  // throws Error for options out of range

  std::int64_t size() const override { return options_.samples; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  double score(std::int64_t index) const;  // of which the sigmoid is the probability of the label 1
  // The area under the curve of the true scores over all samples, exactly as metrics::auc() computes it.
  double best_auc() const;

 private:
  struct Sample;
  Sample draw(std::int64_t index) const;
  double score_of(const Sample& sample) const;
  std::int64_t rank_of(double uniform) const;
  void add_id(std::int64_t field, std::int64_t rank, Sample& sample) const;

  SyntheticClicksOptions options_;
  std::vector<data::Field> fields_;
  std::vector<double> cumulative_;  // of the ids' probabilities, by rank
  std::vector<double> slopes_;      // u
  double pair_scale_ = 0;           // of an element of v
};

}  // namespace lockstep::datasets
