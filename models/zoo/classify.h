// Returns the model function of the zoo's programs: the cross entropy of a classifier on the fields "image" and "label"
// of a batch, the accuracy, and the logits as prediction. `network` outlives the function.
#pragma once

#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/plan/trace.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

inline plan::ModelFunction classify(const Classifier& network, double label_smoothing = 0) {
  return [&network, label_smoothing](const plan::Inputs& in) {
    const Value logits = network(in["image"]), label = in["label"];
    return plan::Traced{.loss = cross_entropy(logits, label, {.label_smoothing = label_smoothing}),
                        .metrics = {metrics::accuracy(logits, label)},
                        .prediction = logits};
  };
}

}  // namespace lockstep::models
