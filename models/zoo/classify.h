// Returns the model function of the zoo's programs: the cross entropy of a classifier on the fields "image" and "label"
// of a batch, or on shares of classes, the accuracy, and the logits as prediction. `network` outlives the function.
#pragma once

#include <string>

#include "lockstep/data/batch_mix.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/plan/trace.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

struct ClassifyOptions {
  double label_smoothing = 0;
  bool shares = false;   // the loss reads the field data::kLabelShares of mixed batches (data::EpochSamples::mix)
  std::int64_t top = 0;  // a further metric counts samples whose class is among this many largest logits; 0: none
};

inline plan::ModelFunction classify(const Classifier& network, const ClassifyOptions& options) {
  return [&network, options](const plan::Inputs& in) {
    const Value logits = network(in["image"]), label = in["label"];
    const Value target = options.shares ? in[std::string(data::kLabelShares)] : label;
    plan::Traced traced{.loss = cross_entropy(logits, target, {.label_smoothing = options.label_smoothing}),
                        .metrics = {metrics::accuracy(logits, label)},
                        .prediction = logits};
    if (options.top > 0) traced.metrics.push_back(metrics::top_k(logits, label, options.top));
    return traced;
  };
}

inline plan::ModelFunction classify(const Classifier& network, double label_smoothing = 0) {
  return classify(network, ClassifyOptions{.label_smoothing = label_smoothing});
}

}  // namespace lockstep::models
