#include "lockstep/ops/convolution_of_norm.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/batch_norm2d.h"

namespace lockstep {
namespace {

constexpr std::size_t kNormInputs = 4;

std::span<const Type> without_norm(std::span<const Type> inputs) { return inputs.first(inputs.size() - kNormInputs); }

void require_planar(const ConvolutionOptions& options, std::string_view op) {
  check(options.axes.size() == 2, op, "options have {} axes, expected 2", options.axes.size());
}

void require_norm(std::string_view op, std::string_view path, std::span<const Type> inputs) {
  std::vector<Type> norm{inputs[0]};
  const std::span<const Type> last = inputs.last(kNormInputs);
  norm.insert(norm.end(), last.begin(), last.end());
  require_batch_norm_inputs(op, path, norm, false);
}

double norm_flops(std::span<const Type> inputs) { return flops_per_element(inputs, 2); }

}  // namespace

ConvolutionOfNormOp::ConvolutionOfNormOp(ConvolutionOp convolution) : convolution_(std::move(convolution)) {
  require_planar(convolution_.options(), "conv2d_of_norm");
}

std::vector<Type> ConvolutionOfNormOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_norm(name(), path, inputs);
  return convolution_.infer(path, without_norm(inputs));
}

double ConvolutionOfNormOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return convolution_.flops(without_norm(inputs), outputs) + norm_flops(inputs);
}

double ConvolutionOfNormOp::saved_bytes(std::span<const Type> inputs) const { return bytes_of_pass(inputs[0]); }

ConvolutionOfNormBackwardWeightsOp::ConvolutionOfNormBackwardWeightsOp(ConvolutionBackwardWeightsOp gradient)
    : gradient_(std::move(gradient)) {
  require_planar(gradient_.options(), "conv2d_of_norm_backward_weights");
}

std::vector<Type> ConvolutionOfNormBackwardWeightsOp::infer(std::string_view path, std::span<const Type> inputs) const {
  require_norm(name(), path, inputs);
  return gradient_.infer(path, without_norm(inputs));
}

double ConvolutionOfNormBackwardWeightsOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  return gradient_.flops(without_norm(inputs), outputs) + norm_flops(inputs);
}

double ConvolutionOfNormBackwardWeightsOp::saved_bytes(std::span<const Type> inputs) const {
  return bytes_of_pass(inputs[0]);
}

}  // namespace lockstep
