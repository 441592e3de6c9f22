// Batch norm of the sum at the end of a residual block whose shortcut is normalised, too: relu(norm(x) + norm(r)) in
// one pass, which does not store norm(r). Plans make these ops (plan/norm_fusion.h), models do not. The norm of r has
// its statistics already: its inputs are r, gamma, beta, mean and inverse deviation.
#pragma once

#include "lockstep/ops/batch_norm2d.h"

namespace lockstep {

// (x, gamma, beta, norm of r) -> as BatchNorm2dOp.
class BatchNorm2dSumOp : public Op {
 public:
  explicit BatchNorm2dSumOp(double epsilon) : norm_(epsilon) {}
  double epsilon() const { return norm_.epsilon(); }
  std::string_view name() const override { return "batch_norm2d_sum"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return "+ norm of residual + relu"; }
  double saved_bytes(std::span<const Type> inputs) const override;

 private:
  BatchNorm2dOp norm_;
};

// Its y again: (x, gamma, beta, mean, inverse deviation, norm of r) -> y.
class BatchNorm2dSumNormaliseOp : public Op {
 public:
  std::string_view name() const override { return "batch_norm2d_sum_normalise"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return "+ norm of residual + relu"; }
  double saved_bytes(std::span<const Type> inputs) const override;
};

}  // namespace lockstep
