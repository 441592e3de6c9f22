// Batch normalisation by the statistics of the samples of all ranks together (SyncBatchNorm). The node of ops/
// batch_norm2d.h is cut in two where its sums are complete: moments -> all_reduce_sum -> normalise, and in backward
// gradient sums -> all_reduce_sum -> gradient. A rank without samples adds zeros.
#pragma once

#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/collective.h"

namespace lockstep {

// x -> f64 (2C + 1): sum of x, then sum of x^2, per channel; the number of elements per channel.
class BatchNorm2dMomentsOp : public Op {
 public:
  std::string_view name() const override { return "batch_norm2d_moments"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
};

// (x, gamma, beta, moments over all ranks, [residual]) -> (y, mean (C), 1/sqrt(var + eps) (C)). The gradient of x
// includes the part that flows through the moments, so the moments get no gradient of their own.
class BatchNorm2dSyncOp : public Op {
 public:
  BatchNorm2dSyncOp(double epsilon, std::shared_ptr<Collective> collective, Epilogue epilogue = {})
      : epsilon_(epsilon), collective_(std::move(collective)), epilogue_(epilogue) {}
  double epsilon() const { return epsilon_; }
  const Epilogue& epilogue() const { return epilogue_; }
  std::shared_ptr<const Op> with(Epilogue epilogue) const {
    return std::make_shared<BatchNorm2dSyncOp>(epsilon_, collective_, epilogue);
  }
  std::string_view name() const override { return "batch_norm2d_sync"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return epilogue_.str(); }

 private:
  double epsilon_;
  std::shared_ptr<Collective> collective_;
  Epilogue epilogue_;
};

// The first half of BatchNorm2dGradientOp, with the same inputs. Outputs: f64 (2C + 1): per channel the sum of g, then
// the sum of g (x - mean), then the number of elements; dgamma; dbeta; [dresidual]. g is dy after ReLU's mask.
class BatchNorm2dGradientSumsOp : public Op {
 public:
  explicit BatchNorm2dGradientSumsOp(Epilogue epilogue, bool adds = false) : epilogue_(epilogue), adds_(adds) {}
  bool relu() const { return epilogue_.relu; }
  bool masks() const { return epilogue_.relu && epilogue_.residual; }
  bool adds() const { return adds_; }
  std::string_view name() const override { return "batch_norm2d_gradient_sums"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override;
  std::string attributes() const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  Epilogue epilogue_;
  bool adds_;
};

// The second half: (x, dy, gamma, mean, inverse deviation, sums over all ranks, [beta]) -> dx. With beta, the op
// computes ReLU's mask as the first half does. With a residual, dy is the dresidual of the first half.
class BatchNorm2dGradientApplyOp : public Op {
 public:
  std::string_view name() const override { return "batch_norm2d_gradient_apply"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
};

// Normalises by the statistics of the samples of all ranks of `collective`. The returned sums are those of this rank's
// samples, as from batch_norm2d().
BatchNormOutputs batch_norm2d_sync(const BatchNormInputs& inputs, double epsilon,
                                   std::shared_ptr<Collective> collective);

}  // namespace lockstep
