// Loss, metrics and prediction of a model of clicks, from the fields "dense", "ids" and "label" of a batch.
#pragma once

#include <cstddef>
#include <optional>

#include "lockstep/plan/trace.h"
#include "models/zoo/click_model.h"

namespace lockstep::models {

enum class ClickLoss : std::uint8_t { Bce, InBatch };

struct ClickTaskOptions {
  ClickLoss loss = ClickLoss::Bce;
  bool dense = false;       // a batch has the field "dense"
  bool vectors = false;     // the prediction is the vectors of user and item, (samples, 2 dim), of two towers
  bool negatives = false;   // InBatch: a training batch has the field "negatives", i32 (samples, count, item columns)
  std::int64_t group = -1;  // the column of ids by which group_auc groups samples; -1: none
};

ClickInputs click_inputs(const plan::Inputs& in, bool dense);

// Bce: the binary cross entropy of the logits. InBatch, of two towers alone: in_batch_softmax() of the samples,
// weighted by their labels, so that only positives count, and the loss and its gradient are 0 where a batch has none;
// of items from outside of the batch, too, with `negatives`. Metrics: AUC, of groups too; calibration and its error;
// with InBatch the log loss, which a Bce loss is. The prediction is the logits. Throws Error for InBatch or vectors of
// another model.
plan::Traced click_task(const ClickModel& model, const plan::Inputs& in, const ClickTaskOptions& options);

}  // namespace lockstep::models
