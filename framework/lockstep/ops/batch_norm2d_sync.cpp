#include "lockstep/ops/batch_norm2d_sync.h"

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

// Two sums per channel and the number of elements.
Type sums_type(const Type& x) { return {Shape{2 * x.shape[1] + 1}, DType::F64}; }

}  // namespace

std::vector<Type> BatchNorm2dMomentsOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_batch_norm_inputs(name(), path, inputs, false);
  return {sums_type(inputs[0])};
}

double BatchNorm2dMomentsOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 3);
}

std::vector<Type> BatchNorm2dSyncOp::infer(std::string_view path, std::span<const Type> inputs) const {
  std::vector<Type> images{inputs[0], inputs[1], inputs[2]};
  if (epilogue_.residual) images.push_back(inputs.back());
  require_batch_norm_inputs(name(), path, images, epilogue_.residual);
  check(inputs[3] == sums_type(inputs[0]), name(), "{}: moments are {}, expected {}", path, inputs[3].str(),
        sums_type(inputs[0]).str());
  return {inputs[0], inputs[1], inputs[1]};
}

std::vector<Value> BatchNorm2dSyncOp::gradient(const Request& r) const {
  check(!r.gradients[1] && !r.gradients[2], name(), "gradients through the batch statistics are not defined");
  require_no_epilogue(name(), epilogue_);
  const Value x = r.inputs[0], dy = r.gradients[0], gamma = r.inputs[1], mean = r.outputs[1], inverse = r.outputs[2];
  const std::vector<Value> sums =
      x.graph().apply(std::make_shared<BatchNorm2dGradientSumsOp>(Epilogue{}), {x, dy, gamma, mean, inverse});
  const Value dx = apply_op(std::make_shared<BatchNorm2dGradientApplyOp>(),
                            {x, dy, gamma, mean, inverse, all_reduce_sum(sums[0], collective_)});
  return {dx, sums[1], sums[2], {}};  // x, gamma, beta, moments
}

double BatchNorm2dSyncOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 2);
}

std::vector<Type> BatchNorm2dGradientSumsOp::infer(std::string_view, std::span<const Type> inputs) const {
  std::vector<Type> outputs{sums_type(inputs[0]), inputs[2], inputs[2]};
  if (masks()) outputs.push_back(inputs[1]);
  return outputs;
}

std::string BatchNorm2dGradientSumsOp::attributes() const {
  return std::string(epilogue_.str()) + (adds_ ? ", of a sum" : "");
}

double BatchNorm2dGradientSumsOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, adds_ ? 5 : 4);
}

double BatchNorm2dGradientApplyOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 4);
}

BatchNormOutputs batch_norm2d_sync(const BatchNormInputs& inputs, double epsilon,
                                   std::shared_ptr<Collective> collective) {
  const Value moments = apply_op(std::make_shared<BatchNorm2dMomentsOp>(), {inputs.x});
  const Value all = all_reduce_sum(moments, collective);
  const Value y = apply_op(std::make_shared<BatchNorm2dSyncOp>(epsilon, std::move(collective)),
                           {inputs.x, inputs.gamma, inputs.beta, all});
  return {y, moments};
}

}  // namespace lockstep
