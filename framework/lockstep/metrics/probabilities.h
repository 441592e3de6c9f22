// Metrics of predicted probabilities, such as those of clicks. Predictions are logits (samples, ...), targets 0 or 1,
// or numbers between, of the same shape and type; the probability is the sigmoid of the logit. Sums are f64, and
// results are exact at any number of ranks, shards and micro-batches. The functions throw Error for shapes and types
// that do not fit.
#pragma once

#include "lockstep/graph/metric.h"

namespace lockstep::metrics {

// The mean of -(t log p + (1 - t) log(1 - p)): "log_loss".
Metric log_loss(Value logits, Value target);
// The sum of probabilities divided by the sum of targets: "calibration", 1 where a model predicts as many clicks as
// there are. Not a number without positive targets.
Metric calibration(Value logits, Value target);
// The expected calibration error, "calibration_error": the mean over samples of |mean probability - mean target| of the
// sample's bin, where bins divide the probabilities from 0 to 1 evenly (Naeini et al., "Obtaining well calibrated
// probabilities using Bayesian binning", 2015).
Metric calibration_error(Value logits, Value target, std::int64_t bins = 10);

}  // namespace lockstep::metrics
