// Normalisations and softmax.
#include <algorithm>
#include <numeric>

#include "lockstep/nn/norms.h"
#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/row_norm.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::onnx {
namespace {

// In training by the statistics of the batch, as nn::BatchNorm; ONNX's momentum is the part of the old statistics.
void read_batch_norm(const NodeReader& r) {
  r.require(r.whole_attribute("training_mode", 0) == 0, "training_mode is 1, expected a model for evaluation");
  // Version 14 has the attribute; before it, statistics as further outputs say the same.
  const auto& outputs = r.node().outputs;
  const bool has_statistics =
      std::any_of(outputs.begin() + 1, outputs.end(), [](const std::string& name) { return !name.empty(); });
  r.require(r.operators() >= 14 || !has_statistics,
            "the statistics of the batch are outputs, as in training; expected a model for evaluation");
  const double epsilon = r.real_attribute("epsilon", 1e-5);
  nn::BatchNormParameters parameters{r.parameter(1), r.parameter(2), r.parameter(3), r.parameter(4)};
  const auto counter = r.tracing().counters.find(r.node().outputs.front());
  const bool known = counter != r.tracing().counters.end();
  if (known) parameters.batches = counter->second;
  if (!r.graph().training() || !known) {
    r.require(!r.graph().training(),
              "scale, shift, mean and variance are not all tensors of the file, which training needs");
    r.set(batch_norm2d_inference(r.value(0), r.value(1), r.value(2), r.value(3), r.value(4), epsilon));
    return;
  }
  r.set(
      nn::batch_norm(r.value(0), parameters,
                     {.channels = r.shape(1)[0], .epsilon = epsilon, .momentum = 1 - r.real_attribute("momentum", 0.9)},
                     r.graph().path()));
}

void read_instance_norm(const NodeReader& r) {
  r.set(instance_norm(r.value(0), r.value(1), r.value(2), r.real_attribute("epsilon", 1e-5)));
}

// Over the dimensions from `axis` on.
int normalised_dimensions(const NodeReader& r) {
  r.require(r.node().outputs.size() == 1, "mean or deviation are outputs, expected the normalised value alone");
  const int rank = r.shape(0).rank();
  return rank - axis_of(r, r.whole_attribute("axis", -1), rank);
}

void read_layer_norm(const NodeReader& r) {
  r.set(layer_norm(r.value(0), normalised_dimensions(r), r.value(1), r.value(2), r.real_attribute("epsilon", 1e-5)));
}

void read_rms_norm(const NodeReader& r) {
  r.set(rms_norm(r.value(0), normalised_dimensions(r), r.value(1), r.real_attribute("epsilon", 1e-5)));
}

void read_group_norm(const NodeReader& r) {
  const std::int64_t channels = r.shape(0)[1];
  r.require(r.shape(1) == Shape{channels},
            formatted("the scale has the shape {}, expected one number for each of {} channels (version 21)",
                      r.shape(1).str(), channels));
  r.set(group_norm(r.value(0), r.whole_attribute("num_groups", 1), r.value(1), r.value(2),
                   r.real_attribute("epsilon", 1e-5)));
}

// Before version 13 over all dimensions from `axis` on together.
template <Value (*function)(Value, int)>
void read_softmax(const NodeReader& r) {
  const Value x = r.value(0);
  const int rank = x.shape().rank();
  const bool older = r.operators() < 13;
  const int axis = axis_of(r, r.whole_attribute("axis", older ? 1 : -1), rank);
  if (!older || axis == rank - 1) {
    r.set(function(x, axis));
    return;
  }
  r.set(reshape(function(flatten(x, axis), axis), x.shape()));
}

}  // namespace

std::span<const Reading> norm_readings() {
  static const std::vector<Reading> readings{
      {"BatchNormalization", read_batch_norm, {"epsilon", "momentum", "spatial", "training_mode"}},
      {"InstanceNormalization", read_instance_norm, {"epsilon"}},
      {"LayerNormalization", read_layer_norm, {"axis", "epsilon", "stash_type"}},
      {"RMSNormalization", read_rms_norm, {"axis", "epsilon", "stash_type"}},
      {"GroupNormalization", read_group_norm, {"epsilon", "num_groups", "stash_type"}},
      {"Softmax", read_softmax<softmax>, {"axis"}},
      {"LogSoftmax", read_softmax<log_softmax>, {"axis"}},
  };
  return readings;
}

}  // namespace lockstep::onnx
