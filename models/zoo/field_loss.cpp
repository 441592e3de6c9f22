#include "models/zoo/field_loss.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/losses/classification.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/classes.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::models {
namespace {

constexpr std::string_view kFieldLossSite = "options";

std::vector<double> parse_weights(const std::string& text) {
  std::vector<double> weights;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    double value = 0;
    const auto [stop, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    check(code == std::errc() && stop == word.data() + word.size() && value >= 0 && value < 1e30, kFieldLossSite,
          "--class-weights has '{}', expected numbers of at least 0 with commas between them, or balanced", word);
    weights.push_back(value);
    begin = end + 1;
  }
  return weights;
}

std::vector<double> balanced(const std::vector<std::int64_t>& counts) {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  std::vector<double> weights;
  for (const std::int64_t count : counts)
    weights.push_back(count == 0 ? 0 : all / (static_cast<double>(counts.size()) * static_cast<double>(count)));
  return weights;
}

Loss loss_of_numbers(FieldLoss loss, Value prediction, Value target) {
  switch (loss) {
    case FieldLoss::L1:
      return l1_loss(prediction, target);
    case FieldLoss::Huber:
      return huber_loss(prediction, target);
    case FieldLoss::RelativeL2:
      return relative_l2_loss(prediction, target);
    default:
      return mean_squared_error(prediction, target);
  }
}

plan::Traced numbers_task(const FieldLossOptions& o, Value output, Value target) {
  Value prediction = output;
  Loss loss;
  if (o.loss == FieldLoss::GaussianNll) {
    const std::int64_t channels = target.shape()[1];
    prediction = slice(output, 1, 0, channels);
    loss = gaussian_nll_loss(prediction, target, softplus(slice(output, 1, channels, channels)));
  } else {
    loss = loss_of_numbers(o.loss, prediction, target);
  }
  plan::Traced traced{
      .loss = loss,
      .metrics = {metrics::root_mean_squared_error(prediction, target), metrics::r_squared(prediction, target)},
      .prediction = prediction};
  if (!o.units.empty())
    std::ranges::move(metrics::errors_in_units(prediction, target, o.units, o.channel_axis),
                      std::back_inserter(traced.metrics));
  return traced;
}

plan::Traced classes_task(const FieldLossOptions& o, Value logits, Value target) {
  const metrics::ClassOptions classes{.ignore_index = o.ignore_index, .names = o.class_names};
  const bool positions = target.shape().rank() > 1;
  plan::Traced traced{.metrics = {metrics::accuracy(logits, target, o.ignore_index)}, .prediction = logits};
  traced.loss = o.loss == FieldLoss::Dice ? dice_loss(softmax(logits, 1), target, {.ignore_index = o.ignore_index})
                                          : cross_entropy(logits, target,
                                                          {.label_smoothing = o.label_smoothing,
                                                           .class_weights = o.class_weights,
                                                           .ignore_index = o.ignore_index});
  if (positions) {
    traced.metrics.push_back(metrics::mean_score(metrics::ClassScore::Iou, logits, target, classes));
    Metric by_class = metrics::score_by_class(metrics::ClassScore::Iou, logits, target, classes);
    by_class.rule.in_training = false;
    traced.metrics.push_back(std::move(by_class));
  } else {
    traced.metrics.push_back(metrics::mean_score(metrics::ClassScore::F1, logits, target, classes));
    traced.metrics.push_back(metrics::auc(logits, target, classes));
  }
  traced.metrics.push_back(metrics::confusion_matrix(logits, target, classes));
  return traced;
}

plan::Traced flags_task(const FieldLossOptions& o, Value logits, Value target) {
  plan::Traced traced{
      .metrics = {metrics::accuracy(logits, target), metrics::positive_score(metrics::ClassScore::Iou, logits, target),
                  metrics::positive_score(metrics::ClassScore::F1, logits, target)},
      .prediction = sigmoid(logits)};
  if (target.shape().rank() == 2) traced.metrics.push_back(metrics::auc(logits, target));
  if (o.loss == FieldLoss::Focal) {
    traced.loss = sigmoid_focal_loss(logits, target, {.gamma = o.focal_gamma});
    return traced;
  }
  BinaryCrossEntropyOptions bce;
  if (!o.class_weights.empty()) {
    std::vector<Value> channels;
    for (const double weight : o.class_weights)
      channels.push_back(fill(logits.graph(), {Shape{1, 1}, logits.dtype()}, weight));
    std::vector<std::int64_t> dims(static_cast<std::size_t>(logits.shape().rank()) - 1, 1);
    dims[0] = logits.shape()[1];
    bce.pos_weights = reshape(channels.size() == 1 ? channels[0] : concat(channels, 0), Shape(std::move(dims)));
  }
  traced.loss = binary_cross_entropy_with_logits(logits, target, bce);
  return traced;
}

}  // namespace

data::TargetKind target_kind(FieldLoss loss) {
  if (loss == FieldLoss::CrossEntropy || loss == FieldLoss::Dice) return data::TargetKind::Classes;
  return loss == FieldLoss::Bce || loss == FieldLoss::Focal ? data::TargetKind::Flags : data::TargetKind::Numbers;
}

std::vector<double> class_weights(const std::string& text, FieldLoss loss, const data::RunData& data) {
  if (text.empty()) return {};
  const bool classes = loss == FieldLoss::CrossEntropy;
  check(classes || loss == FieldLoss::Bce, kFieldLossSite,
        "--class-weights is '{}' with a loss that takes none, expected --loss cross-entropy, or bce for the weights of "
        "positive targets",
        text);
  check(text != "balanced" || classes, kFieldLossSite,
        "--class-weights is balanced with --loss bce, expected a number for each channel of the target");
  std::vector<double> weights = text == "balanced" ? balanced(data.labels.counts) : parse_weights(text);
  const std::int64_t expected = classes ? data.classes() : data.shape_of("target")[0];
  check(std::ssize(weights) == expected, kFieldLossSite, "--class-weights has {} numbers, expected {}: one for each {}",
        weights.size(), expected, classes ? "class" : "channel of the target");
  return weights;
}

Shape output_shape(FieldLoss loss, const data::RunData& data) {
  Shape shape = data.shape_of("target");
  if (target_kind(loss) == data::TargetKind::Classes) return shape.batched(data.classes());
  if (loss == FieldLoss::GaussianNll) shape[0] *= 2;
  return shape;
}

plan::Traced field_task(const FieldLossOptions& options, Value output, Value target) {
  switch (target_kind(options.loss)) {
    case data::TargetKind::Classes:
      return classes_task(options, output, target);
    case data::TargetKind::Flags:
      return flags_task(options, output, target);
    case data::TargetKind::Numbers:
      break;
  }
  return numbers_task(options, output, target);
}

}  // namespace lockstep::models
