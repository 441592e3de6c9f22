// A planar convolution of relu(batch norm of x), and its gradient by the weight, as one op each: the normalised image
// is computed where the convolution reads x, and never stored. Plans make these ops (plan/norm_fusion.h), models do
// not. The last four inputs are those of the norm: gamma, beta, mean and inverse deviation, all (C).
#pragma once

#include "lockstep/ops/convolution.h"

namespace lockstep {

// (x, weight, [bias], [residual], norm) -> y; the epilogue is the convolution's.
class ConvolutionOfNormOp : public Op {
 public:
  // Throws Error for another number of axes than two.
  explicit ConvolutionOfNormOp(ConvolutionOp convolution);
  const ConvolutionOp& convolution() const { return convolution_; }
  bool has_bias(std::size_t inputs) const { return convolution_.has_bias(inputs - 4); }
  std::string_view name() const override { return "conv2d_of_norm"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return convolution_.attributes() + ", of norm + relu"; }
  double saved_bytes(std::span<const Type> inputs) const override;

 private:
  ConvolutionOp convolution_;
};

// (x, dy, norm) -> dweight, and dbias if there is a bias.
class ConvolutionOfNormBackwardWeightsOp : public Op {
 public:
  explicit ConvolutionOfNormBackwardWeightsOp(ConvolutionBackwardWeightsOp gradient);
  const ConvolutionOptions& options() const { return gradient_.options(); }
  std::string_view name() const override { return "conv2d_of_norm_backward_weights"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return "of norm + relu"; }
  double saved_bytes(std::span<const Type> inputs) const override;

 private:
  ConvolutionBackwardWeightsOp gradient_;
};

}  // namespace lockstep
