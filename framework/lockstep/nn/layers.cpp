#include "lockstep/nn/layers.h"

#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"

namespace lockstep::nn {
namespace {

Pool2dOptions pool_options(const PoolConfig& c) {
  const std::int64_t stride = c.stride == 0 ? c.kernel : c.stride;
  return {.kernel_h = c.kernel,
          .kernel_w = c.kernel,
          .stride_h = stride,
          .stride_w = stride,
          .padding_h = c.padding,
          .padding_w = c.padding,
          .ceil_mode = c.ceil_mode};
}

Initializer or_default(Initializer given, std::int64_t fan_in) {
  return given ? std::move(given) : torch_default(fan_in);
}

}  // namespace

Conv2d::Conv2d(Conv2dConfig c)
    : options_{.stride_h = c.stride,
               .stride_w = c.stride,
               .padding_h = c.padding,
               .padding_w = c.padding,
               .dilation_h = c.dilation,
               .dilation_w = c.dilation,
               .groups = c.groups},
      weight_(add("weight", Parameter{.shape = {c.out, c.in / c.groups, c.kernel, c.kernel},
                                      .initialize = or_default(c.weight_init, c.in / c.groups * c.kernel * c.kernel)})),
      bias_(c.bias
                ? &add("bias", Parameter{.shape = {c.out},
                                         .initialize = or_default(c.bias_init, c.in / c.groups * c.kernel * c.kernel),
                                         .role = Role::Bias})
                : nullptr) {}

Value Conv2d::operator()(Value x) const {
  Graph& g = x.graph();
  return conv2d(x, g.parameter(weight_), bias_ != nullptr ? g.parameter(*bias_) : Value(), options_);
}

Linear::Linear(LinearConfig c)
    : weight_(add("weight", Parameter{.shape = {c.out, c.in}, .initialize = or_default(c.weight_init, c.in)})),
      bias_(c.bias ? &add("bias",
                          Parameter{.shape = {c.out}, .initialize = or_default(c.bias_init, c.in), .role = Role::Bias})
                   : nullptr) {}

Value Linear::operator()(Value x) const {
  Graph& g = x.graph();
  return linear(x, g.parameter(weight_), bias_ != nullptr ? g.parameter(*bias_) : Value());
}

Value Dropout::operator()(Value x) const { return dropout(x, probability_, path()); }

Value max_pool(Value x, PoolConfig config) { return max_pool2d(x, pool_options(config)); }
Value average_pool(Value x, PoolConfig config) { return average_pool2d(x, pool_options(config)); }

}  // namespace lockstep::nn
