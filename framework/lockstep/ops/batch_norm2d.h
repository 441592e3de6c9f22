// Batch normalisation of images x (N, C, H, W), or of any x (N, C, ...), over all dimensions but the channels C (Ioffe
// and Szegedy, "Batch normalization" (2015)): with the statistics of the batch in training, with given statistics at
// evaluation. Both ops may have an epilogue, whose residual is the last input. ops/batch_norm2d_sync.h normalises by
// the statistics of all ranks together.
#pragma once

#include "lockstep/graph/graph.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep {

// (x, gamma, beta, [residual]) -> (y, mean (C), 1/sqrt(var + eps) (C), f64 sums (2C): sum of x per channel, then sum of
// x^2). infer() throws Error for one value per channel, as y would be beta for every x; an empty batch is legal.
class BatchNorm2dOp : public Op {
 public:
  explicit BatchNorm2dOp(double epsilon, Epilogue epilogue = {}) : epsilon_(epsilon), epilogue_(epilogue) {}
  double epsilon() const { return epsilon_; }
  const Epilogue& epilogue() const { return epilogue_; }
  std::string_view name() const override { return "batch_norm2d"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return epilogue_.str(); }

 private:
  double epsilon_;
  Epilogue epilogue_;
};

// The statistics of BatchNorm2dOp alone, where the readers of y normalise for themselves: x -> (mean, inverse
// deviation, sums), as outputs 1 to 3 there and with the same bits.
class BatchNorm2dStatisticsOp : public Op {
 public:
  explicit BatchNorm2dStatisticsOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "batch_norm2d_statistics"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  double epsilon_;
};

// Computes the y of BatchNorm2dOp again from the statistics that it returned: (x, gamma, beta, mean, inverse deviation,
// [residual]) -> y.
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

// The gradient of BatchNorm2dOp. Inputs: 0 x, 1 dy, 2 gamma, 3 mean, 4 inverse deviation. Outputs: 0 dx, 1 dgamma,
// 2 dbeta. Fusion adds the gradient of an epilogue. With ReLU alone, input 5 is beta, from which the op computes y and
// so the mask. With ReLU and residual, input 5 is y, and output 3 is dresidual. With `adds`, which requires a residual,
// the incoming gradient is input 1 + input 6.
class BatchNorm2dGradientOp : public Op {
 public:
  explicit BatchNorm2dGradientOp(Epilogue epilogue, bool adds = false) : epilogue_(epilogue), adds_(adds) {}
  const Epilogue& epilogue() const { return epilogue_; }
  bool masks() const { return epilogue_.relu && epilogue_.residual; }  // whether the masked dy is output 3, dresidual
  bool adds() const { return adds_; }
  std::string_view name() const override { return "batch_norm2d_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  Epilogue epilogue_;
  bool adds_;
};

// Normalises by given statistics: (x, gamma, beta, running mean, running variance, [residual]) -> y.
class BatchNorm2dInferenceOp : public Op {
 public:
  explicit BatchNorm2dInferenceOp(double epsilon, Epilogue epilogue = {}) : epsilon_(epsilon), epilogue_(epilogue) {}
  double epsilon() const { return epsilon_; }
  const Epilogue& epilogue() const { return epilogue_; }
  std::string_view name() const override { return "batch_norm2d_inference"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return epilogue_.str(); }

 private:
  double epsilon_;
  Epilogue epilogue_;
};

// The gradient of BatchNorm2dInferenceOp: (x, dy, gamma, running mean, running variance) -> (dx, dgamma, dbeta).
class BatchNorm2dInferenceGradientOp : public Op {
 public:
  explicit BatchNorm2dInferenceGradientOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "batch_norm2d_inference_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;

 private:
  double epsilon_;
};

// Folds a normalisation with given statistics into the convolution before it: (weight, gamma, beta, running mean,
// running variance, [bias]) -> (weight * s, beta + (bias - mean) * s) with s = gamma / sqrt(variance + eps) per filter.
class FoldBatchNormOp : public Op {
 public:
  explicit FoldBatchNormOp(double epsilon) : epsilon_(epsilon) {}
  double epsilon() const { return epsilon_; }
  std::string_view name() const override { return "fold_batch_norm"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;

 private:
  double epsilon_;
};

// Checks that batch norms share: the types of (x, per-channel values..., [residual]), and the absence of an epilogue
// when a gradient is written. They throw Error.
void require_batch_norm_inputs(std::string_view op, std::string_view path, std::span<const Type> inputs, bool residual);
void require_no_epilogue(std::string_view op, const Epilogue& epilogue);
// `flops` for each element of inputs[0].
double flops_per_element(std::span<const Type> inputs, double flops);
// The bytes saved by an op that normalises x where it reads x: a pass of its own would read x and write the normalised
// image, which would then be read in place of x.
double bytes_of_pass(const Type& x);

struct BatchNormInputs {
  Value x, gamma, beta;
};
struct BatchNormOutputs {
  Value y, sums;
};
// Normalises x (N, C, ...) by the statistics of the batch. gamma and beta (C) are scale and shift; `sums` (f64, 2 C)
// are for running statistics. Throws Error where shapes do not fit.
BatchNormOutputs batch_norm2d(Value x, Value gamma, Value beta, double epsilon);
// Normalises x (N, C, ...) by given mean and variance (C). Throws Error where shapes do not fit.
Value batch_norm2d_inference(Value x, Value gamma, Value beta, Value mean, Value variance, double epsilon);

}  // namespace lockstep
