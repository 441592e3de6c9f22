// Softmax cross entropy of logits (N, C) against class indices i32 (N), with label smoothing and class weights as in
// PyTorch: the mean over the batch of w_y (1-e) (-log p_y) + e/C sum_c w_c (-log p_c), divided by the sum of w_y.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep {

struct CrossEntropyOptions {
  double label_smoothing = 0;
  std::vector<double> class_weights = {};  // empty: ones
};

// (logits, targets) -> (loss, weight = sum of w_y, probabilities (N, C)).
class CrossEntropyOp : public Op {
 public:
  explicit CrossEntropyOp(CrossEntropyOptions options) : options_(std::move(options)) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "cross_entropy"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
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

// (logits, targets) -> f64 scalar: how many samples have their target among the k largest logits (ties: lower class
// first).
class CountCorrectOp : public Op {
 public:
  explicit CountCorrectOp(std::int64_t k) : k_(k) {}
  std::int64_t k() const { return k_; }
  std::string_view name() const override { return "count_correct"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;

 private:
  std::int64_t k_;
};

Loss cross_entropy(Value logits, Value target, CrossEntropyOptions options = {});
Value count_correct(Value logits, Value target, std::int64_t k = 1);

}  // namespace lockstep
