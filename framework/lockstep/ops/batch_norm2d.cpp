#include "lockstep/ops/batch_norm2d.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"

namespace lockstep {

double flops_per_element(std::span<const Type> inputs, double flops) {
  return flops * static_cast<double>(inputs[0].shape.elements());
}

double bytes_of_pass(const Type& x) {
  return 2 * static_cast<double>(x.shape.elements()) * static_cast<double>(size_of(x.dtype));
}

void require_batch_norm_inputs(std::string_view op, std::string_view path, std::span<const Type> inputs,
                               bool residual) {
  const Shape& x = inputs[0].shape;
  check(x.rank() >= 2, op, "{}: input is {}, expected (samples, channels, ...)", path, x.str());
  const DType type = sum_type(inputs[0].dtype);
  for (const Type& t : inputs.subspan(1, inputs.size() - (residual ? 2 : 1))) {
    check(t.shape.rank() == 1 && t.dtype == type, op, "{}: per-channel values are {}, expected {}({})", path, t.str(),
          name_of(type), x[1]);
    check(t.shape[0] == x[1], op, "{}: input has {} channels, scale and shift expect {}", path, x[1], t.shape[0]);
  }
  check(!residual || inputs.back() == inputs[0], op, "{}: residual is {}, expected {}", path, inputs.back().str(),
        inputs[0].str());
}

void require_no_epilogue(std::string_view op, const Epilogue& epilogue) {
  check(epilogue == Epilogue{}, op, "gradients are written before fusion, but this op has the epilogue {}",
        epilogue.str());
}

std::vector<Type> BatchNorm2dOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_batch_norm_inputs(name(), path, inputs, epilogue_.residual);
  const Type& per_channel = inputs[1];
  const Shape& x = inputs[0].shape;
  check(x[0] * x.tail().tail().elements() != 1, name(),
        "{}: input is {}, one value per channel, whose variance is 0, so that nothing would be learned; expected at "
        "least 2 values per channel in training: more samples for each rank, shard and micro-batch, or larger images",
        path, x.str());
  return {inputs[0], per_channel, per_channel, {Shape{2 * per_channel.shape[0]}, DType::F64}};
}

std::vector<Value> BatchNorm2dOp::gradient(const Request& r) const {
  check(!r.gradients[1] && !r.gradients[2] && !r.gradients[3], name(),
        "gradients through the batch statistics are not defined");
  require_no_epilogue(name(), epilogue_);
  return r.inputs[0].graph().apply(std::make_shared<BatchNorm2dGradientOp>(Epilogue{}),  // x, gamma, beta
                                   {r.inputs[0], r.gradients[0], r.inputs[1], r.outputs[1], r.outputs[2]});
}

double BatchNorm2dOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 5);
}

std::vector<Type> BatchNorm2dStatisticsOp::infer(std::string_view, std::span<const Type> inputs) const {
  const std::int64_t channels = inputs[0].shape[1];
  const Type per_channel{Shape{channels}, sum_type(inputs[0].dtype)};
  return {per_channel, per_channel, {Shape{2 * channels}, DType::F64}};
}

double BatchNorm2dStatisticsOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 3);
}

double BatchNorm2dNormaliseOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, 2);
}

std::vector<Type> BatchNorm2dGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  std::vector<Type> outputs{inputs[0], inputs[2], inputs[2]};
  if (masks()) outputs.push_back(inputs[1]);
  return outputs;
}

std::string BatchNorm2dGradientOp::attributes() const {
  return std::string(epilogue_.str()) + (adds_ ? ", of a sum" : "");
}

double BatchNorm2dGradientOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return flops_per_element(inputs, adds_ ? 8 : 7);
}

std::vector<Type> BatchNorm2dInferenceOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_batch_norm_inputs(name(), path, inputs, epilogue_.residual);
  return {inputs[0]};
}

std::vector<Value> BatchNorm2dInferenceOp::gradient(const Request& r) const {
  require_no_epilogue(name(), epilogue_);
  std::vector<Value> result =
      r.inputs[0].graph().apply(std::make_shared<BatchNorm2dInferenceGradientOp>(epsilon_),
                                {r.inputs[0], r.gradients[0], r.inputs[1], r.inputs[3], r.inputs[4]});
  result.resize(5);  // the statistics are constants
  return result;
}

std::vector<Type> BatchNorm2dInferenceGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {inputs[0], inputs[2], inputs[2]};
}

std::vector<Type> FoldBatchNormOp::infer(std::string_view, std::span<const Type> inputs) const {
  return {inputs[0], inputs[1]};
}

BatchNormOutputs batch_norm2d(Value x, Value gamma, Value beta, double epsilon) {
  const auto outputs = x.graph().apply(std::make_shared<BatchNorm2dOp>(epsilon), {x, gamma, beta});
  return {outputs[0], outputs[3]};
}

Value batch_norm2d_inference(Value x, Value gamma, Value beta, Value mean, Value variance, double epsilon) {
  return apply_op(std::make_shared<BatchNorm2dInferenceOp>(epsilon), {x, gamma, beta, mean, variance});
}

}  // namespace lockstep
