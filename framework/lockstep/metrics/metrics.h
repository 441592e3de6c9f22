// Metrics of predictions, for plan::Traced::metrics. Each is exact at any number of ranks, shards and micro-batches:
// f64 sums over samples are added, and the result follows from the sums. Predictions and targets have the samples as
// first dimension. The functions throw Error for shapes and types that do not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/graph/loss.h"
#include "lockstep/graph/metric.h"

namespace lockstep::metrics {

// Share of samples whose class (i32, (samples)) has the largest of the logits (samples, classes): "accuracy". Of logits
// (samples, classes, ...) the share of positions, such as pixels; with targets 0 or 1 of the logits' shape and type
// that of elements whose logit is above 0 where the target is 1. Positions with the ignored index count nowhere.
// Further metrics of classes: metrics/classes.h.
Metric accuracy(Value logits, Value label, std::optional<std::int32_t> ignore_index = {});
// Share of samples whose class is among the k largest logits: "top5" for k = 5.
Metric top_k(Value logits, Value label, std::int64_t k);

// Over all elements: mean |p - t| ("mae"), the root of the mean of (p - t)^2 ("rmse"), and the coefficient of
// determination 1 - sum (p - t)^2 / sum (t - mean t)^2 ("r2"; NaN where all targets are equal).
Metric mean_absolute_error(Value prediction, Value target, std::string_view name = "mae");
Metric root_mean_squared_error(Value prediction, Value target, std::string_view name = "rmse");
Metric r_squared(Value prediction, Value target, std::string_view name = "r2");
// The root mean squared error of each channel, (samples, channels, ...): as many results as channels.
Metric channel_errors(Value prediction, Value target, std::string_view name = "rmse_by_channel");

// exp of the mean of a loss, such as the cross entropy of these logits (samples, ...): "perplexity".
Metric perplexity(const Loss& loss, Value logits, std::string_view name = "perplexity");

// The mean over samples of any f64 sum over the samples of a batch, for a metric of the user's own.
Metric mean_of(std::string_view name, Value sum, Better better = Better::Neither);

}  // namespace lockstep::metrics
