#include "lockstep/nn/layers.h"

#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"

namespace lockstep::nn {
namespace {

Parameter buffer(Shape shape, double value, bool is_integer = false) {
  return {.shape = std::move(shape),
          .initialize = constant(value),
          .role = Role::Buffer,
          .trainable = false,
          .is_integer = is_integer};
}

Initializer or_default(Initializer given, std::int64_t fan_in) {
  return given ? std::move(given) : torch_default(fan_in);
}

}  // namespace

Linear::Linear(LinearConfig c)
    : weight_(add("weight", Parameter{.shape = {c.out, c.in}, .initialize = or_default(c.weight_init, c.in)})),
      bias_(c.bias ? &add("bias",
                          Parameter{.shape = {c.out}, .initialize = or_default(c.bias_init, c.in), .role = Role::Bias})
                   : nullptr) {}

Value Linear::operator()(Value x) const {
  Graph& g = x.graph();
  return linear(x, g.parameter(weight_), bias_ != nullptr ? g.parameter(*bias_) : Value());
}

BatchNorm2d::BatchNorm2d(BatchNorm2dConfig config)
    : config_(config),
      weight_(
          add("weight",
              Parameter{.shape = {config.channels}, .initialize = constant(config.initial_scale), .role = Role::Norm})),
      bias_(add("bias", Parameter{.shape = {config.channels}, .initialize = constant(0), .role = Role::Norm})),
      mean_(add("running_mean", buffer({config.channels}, 0))),
      variance_(add("running_var", buffer({config.channels}, 1))),
      batches_(add("num_batches_tracked", buffer({}, 0, true))) {}

Value BatchNorm2d::operator()(Value x) const {
  Graph& g = x.graph();
  const Value gamma = g.parameter(weight_), beta = g.parameter(bias_);
  if (!g.training() || frozen_) {
    return batch_norm2d_inference(x, gamma, beta, g.parameter(mean_), g.parameter(variance_), config_.epsilon);
  }
  const auto& [ranks, all_norms] = g.synchronisation();
  const bool sync = ranks != nullptr && (config_.sync || all_norms);
  const BatchNormOutputs out = sync ? batch_norm2d_sync({x, gamma, beta}, config_.epsilon, ranks)
                                    : batch_norm2d(x, gamma, beta, config_.epsilon);
  g.add({.mean = &mean_,
         .variance = &variance_,
         .batches = &batches_,
         .momentum = config_.momentum,
         .per_sample = x.shape()[2] * x.shape()[3],
         .sums = out.sums,
         .path = path(),
         .synchronised = sync});
  return out.y;
}

Value Dropout::operator()(Value x) const { return dropout(x, probability_, path()); }

}  // namespace lockstep::nn
