// Softmax cross entropy of logits (N, C) or (N, C, ...), whose further dimensions are positions such as pixels, as
// PyTorch's cross_entropy. With p the softmax over C, label smoothing e and class weights w, a position i has the loss
//   class index y:         (1-e) w_y (-log p_y) + e/C sum_c w_c (-log p_c)
//   probabilities t_c:     sum_c w_c t'_c (-log p_c) with t'_c = (1-e) t_c + e/C
// The loss is sum_i s_i loss_i / sum_i s_i w_y for indices and sum_i s_i loss_i / sum_i s_i for probabilities, where
// s_i is the weight of the position. A position whose index is the ignored one counts nowhere.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep {

struct CrossEntropyOptions {
  double label_smoothing = 0;                       // in [0, 1]
  std::vector<double> class_weights = {};           // at least 0, one for each class; empty: ones
  std::optional<std::int32_t> ignore_index = -100;  // PyTorch's; empty: every index must be a class
};

// (logits, targets, [weights of positions]) -> (loss, sum of weights, probabilities as the logits). Targets are i32
// without the dimension C, or probabilities in the type and shape of the logits.
class CrossEntropyOp : public Op {
 public:
  explicit CrossEntropyOp(CrossEntropyOptions options) : options_(std::move(options)) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "cross_entropy"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  CrossEntropyOptions options_;
};

// (probabilities, targets, dloss, sum of weights, [weights of positions]) -> dlogits.
class CrossEntropyGradientOp : public Op {
 public:
  explicit CrossEntropyGradientOp(CrossEntropyOptions options) : options_(std::move(options)) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "cross_entropy_gradient"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }

 private:
  CrossEntropyOptions options_;
};

// (logits, targets) -> f64 scalar: the number of samples whose target is among the k largest logits; of equal logits
// the lower class comes first.
class CountCorrectOp : public Op {
 public:
  explicit CountCorrectOp(std::int64_t k) : k_(k) {}
  std::int64_t k() const { return k_; }
  std::string_view name() const override { return "count_correct"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;

 private:
  std::int64_t k_;
};

// Returns the loss of logits (N, C, ...) for class indices i32 (N, ...) or for probabilities (N, C, ...). Weights of
// samples are (N), a mask broadcasts to (N, ...). Throws Error where types do not fit. An index that is neither a class
// nor the ignored one throws SampleError when the plan runs.
Loss cross_entropy(Value logits, Value target, CrossEntropyOptions options = {}, const LossWeights& weights = {});
// Returns the number of samples whose target is among the k largest logits, an f64 scalar. Throws Error for k < 1.
Value count_correct(Value logits, Value target, std::int64_t k = 1);

}  // namespace lockstep
