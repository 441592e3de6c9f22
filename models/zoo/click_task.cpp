#include "models/zoo/click_task.h"

#include "lockstep/core/error.h"
#include "lockstep/losses/classification.h"
#include "lockstep/losses/retrieval.h"
#include "lockstep/metrics/classes.h"
#include "lockstep/metrics/probabilities.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "models/zoo/two_towers.h"

namespace lockstep::models {

ClickInputs click_inputs(const plan::Inputs& in, bool dense) {
  return {.dense = dense ? in["dense"] : Value(), .ids = in["ids"]};
}

namespace {

// The candidates of the loss; those from outside of the batch in training alone.
InBatchOptions candidates(const TwoTowers& towers, const plan::Inputs& in, const ClickInputs& inputs,
                          const ClickTaskOptions& options) {
  const Value ids = select(towers.item_columns(inputs.ids), 1, 0);
  InBatchOptions of{.temperature = towers.temperature(), .ids = ids, .log_q = towers.log_q(ids)};
  if (!options.negatives || !in.graph().training()) return of;
  const Value drawn = in["negatives"];
  const Shape shape = drawn.shape();
  const Value columns = reshape(drawn, {shape[0] * shape[1], shape[2]});
  of.more = towers.item_vectors(columns);
  of.more_ids = select(columns, 1, 0);
  of.more_log_q = towers.log_q(of.more_ids);
  return of;
}

}  // namespace

plan::Traced click_task(const ClickModel& model, const plan::Inputs& in, const ClickTaskOptions& options) {
  const ClickInputs inputs = click_inputs(in, options.dense);
  const Value label = in["label"], logits = model(inputs);
  plan::Traced traced{.metrics = {metrics::auc(logits, label), metrics::calibration(logits, label),
                                  metrics::calibration_error(logits, label)},
                      .prediction = logits};
  if (options.group >= 0)
    traced.metrics.push_back(metrics::grouped_auc(logits, label, select(inputs.ids, 1, options.group)));
  const auto* const towers = dynamic_cast<const TwoTowers*>(&model);
  check(towers != nullptr || (options.loss == ClickLoss::Bce && !options.vectors), "towers",
        "the loss softmax and vectors are for two towers, expected bce and logits for another model");
  if (options.vectors) traced.prediction = concat({towers->user(inputs), towers->item(inputs)}, 1);
  if (options.loss == ClickLoss::Bce) {
    traced.loss = binary_cross_entropy_with_logits(logits, label);
    return traced;
  }
  traced.loss = in_batch_softmax(towers->user(inputs), towers->item(inputs), candidates(*towers, in, inputs, options),
                                 {.sample = label});
  // Samples without a click weigh nothing, and a small batch may have no other ones: its loss and gradient are 0, but a
  // step whose weight is 0 is an error. Added to the weight of a click, this number disappears in rounding.
  constexpr double kLeastWeight = 1e-30;
  traced.loss.weight = traced.loss.weight + kLeastWeight;
  traced.metrics.push_back(metrics::log_loss(logits, label));
  return traced;
}

}  // namespace lockstep::models
