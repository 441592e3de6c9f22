// 2-d convolution (cross-correlation, as in every framework): x (N, C, H, W), weight (O, C/groups, KH, KW), bias (O) ->
// y (N, O, H', W').
#pragma once

#include "lockstep/graph/graph.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep {

struct Conv2dOptions {
  std::int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;
};

class Conv2dOp : public Op {
 public:
  explicit Conv2dOp(Conv2dOptions options, Epilogue epilogue = {}) : options_(options), epilogue_(epilogue) {}
  const Conv2dOptions& options() const { return options_; }
  const Epilogue& epilogue() const { return epilogue_; }
  bool has_bias(std::size_t inputs) const { return inputs > (epilogue_.residual ? 3 : 2); }
  std::string_view name() const override { return "conv2d"; }
  // Inputs: x, weight, [bias], [residual].
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  Conv2dOptions options_;
  Epilogue epilogue_;
};

// The gradient with respect to x: (dy, weight) -> dx of the given shape.
class Conv2dBackwardDataOp : public Op {
 public:
  Conv2dBackwardDataOp(Conv2dOptions options, Shape input) : options_(options), input_(std::move(input)) {}
  const Conv2dOptions& options() const { return options_; }
  std::string_view name() const override { return "conv2d_backward_data"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  Conv2dOptions options_;
  Shape input_;
};

// The gradient with respect to weight and bias: (x, dy) -> dweight of the given shape, and dbias if there is a bias.
class Conv2dBackwardWeightsOp : public Op {
 public:
  Conv2dBackwardWeightsOp(Conv2dOptions options, Shape weight, bool bias)
      : options_(options), weight_(std::move(weight)), bias_(bias) {}
  const Conv2dOptions& options() const { return options_; }
  std::string_view name() const override { return "conv2d_backward_weights"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;

 private:
  Conv2dOptions options_;
  Shape weight_;
  bool bias_;
};

// Convolves x with weight and adds the bias, unless it is an empty Value. Throws Error where shapes or types do not
// fit.
Value conv2d(Value x, Value weight, Value bias = {}, Conv2dOptions options = {});

}  // namespace lockstep
