// The cross entropy of logits x W^T + b over a vocabulary, without the logits: they are computed block by block, and
// computed again for the gradient, so that memory does not grow with positions times vocabulary. The values are those
// of cross_entropy(linear(x, W, b), targets) (ops/cross_entropy.h). It can be differentiated once.
#pragma once

#include "lockstep/ops/cross_entropy.h"

namespace lockstep {

struct VocabularyCrossEntropyOptions {
  double label_smoothing = 0;                       // in [0, 1]
  std::optional<std::int32_t> ignore_index = -100;  // as that of cross_entropy()
};

struct VocabularyLoss {
  Loss loss;      // the mean over positions, with the sum of their weights
  Value correct;  // f64 scalar: positions of some weight whose target has the largest logit; of equal ones the first
  Value each;     // the losses of positions, in the shape of the targets; 0 where the index is the ignored one. A
                  // value to look at: it has no gradient
};

// x (..., E), table (V, E), bias (V) or empty, targets i32 (...). The table may be an embedding's weight that is used
// twice (tied weights). Weights as in cross_entropy(): sample (first dimension), mask broadcasts to the targets. In a
// graph with bf16 products x is bf16; the table, logits and sums are f32. Throws Error where shapes or types do not
// fit; an index outside the vocabulary that is not the ignored one throws SampleError when the plan runs.
VocabularyLoss vocabulary_cross_entropy(Value x, Value table, Value bias, Value targets,
                                        const VocabularyCrossEntropyOptions& options = {},
                                        const LossWeights& weights = {});

struct VocabularyAttributes {
  VocabularyCrossEntropyOptions options;
  bool bias = false, weights = false;  // whether there are these inputs
  std::int64_t per_sample = 1;         // positions of a sample, for errors
};

// (x (M, E), table (V, E), targets (M), [bias (V)], [weights (M)])
// -> loss, sum of weights, log-sum-exp (M), losses (M), number of correct positions f64.
class VocabularyCrossEntropyOp : public Op {
 public:
  explicit VocabularyCrossEntropyOp(VocabularyAttributes attributes) : attributes_(attributes) {}
  const VocabularyAttributes& options() const { return attributes_; }
  std::string_view name() const override { return "vocabulary_cross_entropy"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  VocabularyAttributes attributes_;
};

// (the inputs of VocabularyCrossEntropyOp, log-sum-exp, sum of weights, dloss) -> dx, dtable, [dbias].
class VocabularyCrossEntropyGradientOp : public Op {
 public:
  explicit VocabularyCrossEntropyGradientOp(VocabularyAttributes attributes) : attributes_(attributes) {}
  const VocabularyAttributes& options() const { return attributes_; }
  std::string_view name() const override { return "vocabulary_cross_entropy_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  VocabularyAttributes attributes_;
};

}  // namespace lockstep
