#include "lockstep/nn/norms.h"

#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/graph/module_path.h"
#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/row_norm.h"

namespace lockstep::nn {
namespace {

Parameter norm_parameter(Shape shape, double value) {
  return {.shape = std::move(shape), .initialize = constant(value), .role = Role::Norm};
}

Parameter norm_buffer(Shape shape, double value, bool is_integer = false) {
  return {.shape = std::move(shape),
          .initialize = constant(value),
          .role = Role::Buffer,
          .trainable = false,
          .is_integer = is_integer};
}

Value value_of(Graph& graph, const Parameter* parameter) {
  return parameter != nullptr ? graph.parameter(*parameter) : Value();
}

// Checks that x ends in `shape`.
void require_rows(std::string_view op, const std::string& path, const Value& x, const Shape& shape) {
  const int extra = x.shape().rank() - shape.rank();
  bool fits = extra >= 0;
  for (int i = 0; fits && i < shape.rank(); ++i) fits = x.shape()[extra + i] == shape[i];
  check(fits, op, "{}: input is {}, expected the last dimensions {}", path_or_model(path), x.shape().str(),
        shape.str());
}

void require_channels(std::string_view op, const std::string& path, const Value& x, std::int64_t channels) {
  check(x.shape().rank() >= 2 && x.shape()[1] == channels, op, "{}: input is {}, expected (samples, {}, ...)",
        path_or_model(path), x.shape().str(), channels);
}

}  // namespace

BatchNorm::BatchNorm(Config config, Ranks ranks)
    : config_(config),
      ranks_(ranks),
      parameters_{.weight = &add("weight", norm_parameter({config.channels}, config.initial_scale)),
                  .bias = &add("bias", norm_parameter({config.channels}, 0)),
                  .mean = &add("running_mean", norm_buffer({config.channels}, 0)),
                  .variance = &add("running_var", norm_buffer({config.channels}, 1)),
                  .batches = &add("num_batches_tracked", norm_buffer({}, 0, true))} {}

Value BatchNorm::operator()(Value x) const {
  const int rank = x.shape().rank();
  check(rank >= ranks_.least && rank <= ranks_.most, "batch_norm", "{}: input is {}, expected {}",
        path_or_model(path()), x.shape().str(), ranks_.expected);
  return batch_norm(x, parameters_, config_, path(), frozen_);
}

Value batch_norm(Value x, const BatchNormParameters& parameters, const BatchNormConfig& config, const std::string& path,
                 bool frozen) {
  Graph& g = x.graph();
  const Value gamma = g.parameter(*parameters.weight), beta = g.parameter(*parameters.bias);
  if (!g.training() || frozen) {
    return batch_norm2d_inference(x, gamma, beta, g.parameter(*parameters.mean), g.parameter(*parameters.variance),
                                  config.epsilon);
  }
  const auto& [ranks, all_norms] = g.synchronisation();
  const bool sync = ranks != nullptr && (config.sync || all_norms);
  const BatchNormOutputs out =
      sync ? batch_norm2d_sync({x, gamma, beta}, config.epsilon, ranks) : batch_norm2d(x, gamma, beta, config.epsilon);
  g.add({.mean = parameters.mean,
         .variance = parameters.variance,
         .batches = parameters.batches,
         .momentum = config.momentum,
         .per_sample = x.shape().tail().tail().elements(),
         .sums = out.sums,
         .path = path,
         .synchronised = sync});
  return out.y;
}

LayerNorm::LayerNorm(Config config)
    : config_(std::move(config)),
      weight_(config_.elementwise_affine ? &add("weight", norm_parameter(config_.shape, 1)) : nullptr),
      bias_(weight_ != nullptr && config_.bias ? &add("bias", norm_parameter(config_.shape, 0)) : nullptr) {
  check(config_.shape.rank() >= 1, "layer_norm", "the normalised shape has no dimensions, expected at least one");
}

Value LayerNorm::operator()(Value x) const {
  require_rows("layer_norm", path(), x, config_.shape);
  Graph& g = x.graph();
  return layer_norm(x, config_.shape.rank(), value_of(g, weight_), value_of(g, bias_), config_.epsilon);
}

RMSNorm::RMSNorm(Config config)
    : config_(std::move(config)),
      weight_(config_.elementwise_affine ? &add("weight", norm_parameter(config_.shape, 1)) : nullptr) {
  check(config_.shape.rank() >= 1, "rms_norm", "the normalised shape has no dimensions, expected at least one");
}

Value RMSNorm::operator()(Value x) const {
  require_rows("rms_norm", path(), x, config_.shape);
  const double smallest = sum_type(x.dtype()) == DType::F64
                              ? std::numeric_limits<double>::epsilon()
                              : static_cast<double>(std::numeric_limits<float>::epsilon());
  return rms_norm(x, config_.shape.rank(), value_of(x.graph(), weight_), config_.epsilon.value_or(smallest));
}

GroupNorm::GroupNorm(Config config)
    : config_(config),
      weight_(config.affine ? &add("weight", norm_parameter({config.channels}, 1)) : nullptr),
      bias_(config.affine ? &add("bias", norm_parameter({config.channels}, 0)) : nullptr) {
  check(config.groups >= 1 && config.channels % config.groups == 0, "group_norm",
        "{} channels do not divide into {} groups", config.channels, config.groups);
}

Value GroupNorm::operator()(Value x) const {
  require_channels("group_norm", path(), x, config_.channels);
  Graph& g = x.graph();
  return group_norm(x, config_.groups, value_of(g, weight_), value_of(g, bias_), config_.epsilon);
}

InstanceNorm::InstanceNorm(Config config, int rank, const char* expected)
    : config_(config),
      rank_(rank),
      expected_(expected),
      weight_(config.affine ? &add("weight", norm_parameter({config.channels}, 1)) : nullptr),
      bias_(config.affine ? &add("bias", norm_parameter({config.channels}, 0)) : nullptr) {}

Value InstanceNorm::operator()(Value x) const {
  check(x.shape().rank() == rank_, "instance_norm", "{}: input is {}, expected {}", path_or_model(path()),
        x.shape().str(), expected_);
  require_channels("instance_norm", path(), x, config_.channels);
  Graph& g = x.graph();
  return instance_norm(x, value_of(g, weight_), value_of(g, bias_), config_.epsilon);
}

}  // namespace lockstep::nn
