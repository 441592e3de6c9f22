#include "lockstep/ops/vocabulary_cross_entropy.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/loss_weights.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {

std::vector<Type> VocabularyCrossEntropyOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Type &x = inputs[0], &table = inputs[1], &targets = inputs[2];
  const DType sums = sum_type(x.dtype);
  check(x.shape.rank() == 2 && table.shape.rank() == 2 && is_floating(x.dtype), name(),
        "{}: input is {} and the table {}, expected a floating type (positions, features) and (vocabulary, features)",
        path, x.str(), table.str());
  check(x.shape[1] == table.shape[1], name(), "{}: input has {} features, the table expects {}", path, x.shape[1],
        table.shape[1]);
  check(table.dtype == sums, name(), "{}: input is {}, table {}: {}", path, x.str(), table.str(), kTypesDiffer);
  const Type expected{Shape{x.shape[0]}, DType::I32};
  check(targets == expected, name(), "{}: targets are {}, expected {}, one index per position", path, targets.str(),
        expected.str());
  if (attributes_.bias) {
    const Type bias{Shape{table.shape[0]}, sums};
    check(inputs[3] == bias, name(), "{}: bias is {}, expected {}", path, inputs[3].str(), bias.str());
  }
  const double smoothing = attributes_.options.label_smoothing;
  check(smoothing >= 0 && smoothing <= 1, name(), "{}: label smoothing {} is not in [0, 1]", path, smoothing);
  const Type scalar{Shape{}, sums}, positions{Shape{x.shape[0]}, sums};
  return {scalar, scalar, positions, positions, {Shape{}, DType::F64}};
}

std::vector<Value> VocabularyCrossEntropyOp::gradient(const Request& r) const {
  check(std::none_of(r.gradients.begin() + 2, r.gradients.end(), [](Value v) { return bool(v); }), name(),
        "{}: the losses of positions have no gradient, expected the loss or its sum of weights",
        axes::path(r.inputs[0]));
  check(!r.needed[2] && !(attributes_.weights && r.needed.back()), name(),
        "the targets or weights depend on a parameter, expected constants: x, table and bias have gradients");
  if (!r.gradients[0]) return std::vector<Value>(r.inputs.size());  // the sum of weights depends on none of them
  std::vector<Value> inputs(r.inputs.begin(), r.inputs.end());
  inputs.insert(inputs.end(), {r.outputs[2], r.outputs[1], r.gradients[0]});
  const auto d =
      r.inputs[0].graph().apply(std::make_shared<VocabularyCrossEntropyGradientOp>(attributes_), std::move(inputs));
  std::vector<Value> result(r.inputs.size());
  result[0] = d[0];
  result[1] = d[1];
  if (attributes_.bias) result[3] = d[2];
  return result;
}

double VocabularyCrossEntropyOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return 2.0 * static_cast<double>(inputs[0].shape[0]) * static_cast<double>(inputs[1].shape.elements());
}

std::vector<Type> VocabularyCrossEntropyGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  std::vector<Type> outputs{inputs[0], inputs[1]};
  if (attributes_.bias) outputs.push_back(inputs[3]);
  return outputs;
}

double VocabularyCrossEntropyGradientOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return 6.0 * static_cast<double>(inputs[0].shape[0]) * static_cast<double>(inputs[1].shape.elements());
}

VocabularyLoss vocabulary_cross_entropy(Value x, Value table, Value bias, Value targets,
                                        const VocabularyCrossEntropyOptions& options, const LossWeights& weights) {
  const std::string_view name = "vocabulary_cross_entropy";
  const Shape shape = x.shape(), positions = targets.shape();
  check(shape.rank() >= 2, name, "{}: input is {}, expected (samples, ..., features)", axes::path(x), x.type().str());
  const std::int64_t features = shape[shape.rank() - 1], count = shape.elements() / std::max<std::int64_t>(1, features);
  check(Shape(std::vector(shape.dims().begin(), shape.dims().end() - 1)) == positions, name,
        "{}: input is {}, targets {}, expected one target for each row of features", axes::path(x), x.type().str(),
        targets.type().str());
  const Value rows = cast_for_product(reshape(x, Shape{count, features}));
  const DType sums = sum_type(rows.dtype());
  std::vector<Value> inputs{rows, table, reshape(targets, Shape{count})};
  if (bias) inputs.push_back(bias);
  const bool weighted = weights.sample || weights.mask;
  if (weighted) {
    const Value each = element_weights(name, weights, {positions, sums});
    inputs.push_back(reshape(broadcast_to(each, positions), Shape{count}));
  }
  const auto op = std::make_shared<VocabularyCrossEntropyOp>(
      VocabularyAttributes{.options = options,
                           .bias = static_cast<bool>(bias),
                           .weights = weighted,
                           .per_sample = count / std::max<std::int64_t>(1, positions[0])});
  const auto outputs = rows.graph().apply(op, std::move(inputs));
  return {.loss = {outputs[0], outputs[1]}, .correct = outputs[4], .each = reshape(outputs[3], positions)};
}

}  // namespace lockstep
