// Softmax cross entropy of logits (N, C) against class indices i32 (N), with label smoothing e and class weights w as
// in PyTorch's cross_entropy: the sum over the batch of w_y (1-e) (-log p_y) + e/C sum_c w_c (-log p_c), divided by the
// sum over the batch of w_y.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep {

struct CrossEntropyOptions {
  double label_smoothing = 0;              // in [0, 1]
  std::vector<double> class_weights = {};  // empty: ones
};

// (logits, targets) -> (loss, weight = sum of w_y, probabilities (N, C)).
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

// (probabilities, targets, dloss, weight) -> dlogits.
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

// Returns the loss of logits (N, C) for targets (i32, N), weighted by the sum of w_y. Throws Error where types do not
// fit. A target outside [0, C) throws SampleError when the plan runs.
Loss cross_entropy(Value logits, Value target, CrossEntropyOptions options = {});
// Returns the number of samples whose target is among the k largest logits, an f64 scalar. Throws Error for k < 1.
Value count_correct(Value logits, Value target, std::int64_t k = 1);

}  // namespace lockstep
