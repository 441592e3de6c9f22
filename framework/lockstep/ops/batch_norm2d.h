// Batch normalisation over (N, H, W) per channel (Ioffe and Szegedy 2015): with the batch's own statistics in training,
// with given ones at evaluation.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (x, gamma, beta) -> (y, mean (C), 1/sqrt(var + eps) (C), f64 sums (2C): sum of x, then sum of x^2, per channel).
class BatchNorm2dOp : public Op {
 public:
  explicit BatchNorm2dOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "batch_norm2d"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  double epsilon_;
};

// (x, dy, gamma, mean, inverse deviation) -> (dx, dgamma, dbeta).
class BatchNorm2dGradientOp : public Op {
 public:
  std::string_view name() const override { return "batch_norm2d_gradient"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
};

// (x, gamma, beta, running mean, running variance) -> y.
class BatchNorm2dInferenceOp : public Op {
 public:
  explicit BatchNorm2dInferenceOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "batch_norm2d_inference"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  double epsilon_;
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

struct BatchNormOutputs {
  Value y, sums;
};
BatchNormOutputs batch_norm2d(Value x, Value gamma, Value beta, double epsilon);
Value batch_norm2d_inference(Value x, Value gamma, Value beta, Value mean, Value variance, double epsilon);

}  // namespace lockstep
