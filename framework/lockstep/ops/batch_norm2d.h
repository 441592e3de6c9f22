// Batch normalisation over (N, H, W) per channel (Ioffe and Szegedy 2015): with the batch's own statistics in training,
// with given ones at evaluation. Both may have an epilogue, whose residual is their last input. Statistics of all ranks
// together are in ops/batch_norm2d_sync.h.
#pragma once

#include "lockstep/graph/graph.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep {

// (x, gamma, beta, [residual]) -> (y, mean (C), 1/sqrt(var + eps) (C), f64 sums (2C): sum of x, then sum of x^2, per
// channel). One value per channel is refused, as its y would be beta whatever x is; none is legal.
class BatchNorm2dOp : public Op {
 public:
  explicit BatchNorm2dOp(double epsilon, Epilogue epilogue = {}) : epsilon_(epsilon), epilogue_(epilogue) {}
  double epsilon() const { return epsilon_; }
  const Epilogue& epilogue() const { return epilogue_; }
  std::string_view name() const override { return "batch_norm2d"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return epilogue_.str(); }

 private:
  double epsilon_;
  Epilogue epilogue_;
};

// The same y again from the statistics that BatchNorm2dOp left: (x, gamma, beta, mean, inverse deviation, [residual])
// -> y.
class BatchNorm2dNormaliseOp : public Op {
 public:
  explicit BatchNorm2dNormaliseOp(Epilogue epilogue) : epilogue_(epilogue) {}
  const Epilogue& epilogue() const { return epilogue_; }
  std::string_view name() const override { return "batch_norm2d_normalise"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return epilogue_.str(); }

 private:
  Epilogue epilogue_;
};

// (x, dy, gamma, mean, inverse deviation) -> (dx, dgamma, dbeta). The plan gives it the gradient of an epilogue: with
// ReLU, input 5 tells where it let through: beta, from which y follows, or with a residual y itself, and then dresidual
// is output 3. With `adds`, which takes a residual, dy is input 1 plus input 6.
class BatchNorm2dGradientOp : public Op {
 public:
  explicit BatchNorm2dGradientOp(Epilogue epilogue, bool adds = false) : epilogue_(epilogue), adds_(adds) {}
  const Epilogue& epilogue() const { return epilogue_; }
  bool masks() const { return epilogue_.relu && epilogue_.residual; }  // dy, and returns it as dresidual
  bool adds() const { return adds_; }
  std::string_view name() const override { return "batch_norm2d_gradient"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  Epilogue epilogue_;
  bool adds_;
};

// (x, gamma, beta, running mean, running variance, [residual]) -> y.
class BatchNorm2dInferenceOp : public Op {
 public:
  explicit BatchNorm2dInferenceOp(double epsilon, Epilogue epilogue = {}) : epsilon_(epsilon), epilogue_(epilogue) {}
  double epsilon() const { return epsilon_; }
  const Epilogue& epilogue() const { return epilogue_; }
  std::string_view name() const override { return "batch_norm2d_inference"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return epilogue_.str(); }

 private:
  double epsilon_;
  Epilogue epilogue_;
};

// (x, dy, gamma, running mean, running variance) -> (dx, dgamma, dbeta).
class BatchNorm2dInferenceGradientOp : public Op {
 public:
  explicit BatchNorm2dInferenceGradientOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "batch_norm2d_inference_gradient"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;

 private:
  double epsilon_;
};

// A convolution and the normalisation with given statistics after it are one convolution: (weight, gamma, beta, running
// mean, running variance, [bias]) -> (weight * s, beta + (bias - mean) * s) with s = gamma / sqrt(variance + eps) per
// filter.
class FoldBatchNormOp : public Op {
 public:
  explicit FoldBatchNormOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "fold_batch_norm"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;

 private:
  double epsilon_;
};

// What batch norms have in common: the checks of (x, per-channel values..., [residual]), and that no epilogue is there
// when a gradient is written.
void require_batch_norm_inputs(std::string_view op, std::string_view place, std::span<const Type> inputs,
                               bool residual);
void require_no_epilogue(std::string_view op, const Epilogue& epilogue);

struct BatchNormInputs {
  Value x, gamma, beta;
};
struct BatchNormOutputs {
  Value y, sums;
};
BatchNormOutputs batch_norm2d(Value x, Value gamma, Value beta, double epsilon);
Value batch_norm2d_inference(Value x, Value gamma, Value beta, Value mean, Value variance, double epsilon);

}  // namespace lockstep
