#include "lockstep/ops/batch_norm2d_sum.h"

namespace lockstep {

std::vector<Type> BatchNorm2dSumOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_batch_norm_inputs(name(), path, inputs.subspan(3), false);
  std::vector<Type> own(inputs.begin(), inputs.begin() + 4);  // with r as a residual
  require_batch_norm_inputs(name(), path, own, true);
  return norm_.infer(path, inputs.first(3));
}

double BatchNorm2dSumOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 8);
}

double BatchNorm2dSumOp::saved_bytes(std::span<const Type> inputs) const { return bytes_of_pass(inputs[0]); }

double BatchNorm2dSumNormaliseOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 6);
}

double BatchNorm2dSumNormaliseOp::saved_bytes(std::span<const Type> inputs) const { return bytes_of_pass(inputs[0]); }

}  // namespace lockstep
