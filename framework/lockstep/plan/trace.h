// The model function: it is called once per (mode, input types) with symbolic inputs, and returns symbolic outputs.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"
#include "lockstep/graph/metric.h"

namespace lockstep::plan {

// The inputs of a trace, by name; in training these are the fields of a batch.
class Inputs {
 public:
  // Throws Error for a name that begins with '@', as such names are reserved for the graph.
  Inputs(Graph& graph, const std::map<std::string, Type>& types);
  Value operator[](const std::string& name) const;  // throws Error that lists the inputs
  Graph& graph() const { return graph_; }

 private:
  Graph& graph_;
  std::map<std::string, Value> values_;
};

// One of several losses. The loss of the training is the sum of `factor` times each loss; each loss without its factor
// is a metric of this name (lower is better).
struct PartialLoss {
  std::string name;
  Loss loss;
  double factor = 1;
};

// The outputs of the model function: the loss for training and evaluation, metrics (metrics/metrics.h), and a
// prediction for inference. Only a training step needs a loss; all else is optional.
struct Traced {
  Loss loss = {};
  std::vector<PartialLoss> losses = {};  // in place of `loss`: see combine_losses()
  std::vector<Metric> metrics = {};
  Value prediction = {};
};

// Calls f(Value) for every value; an optional value that is missing is invalid.
template <class T, class F>
requires std::same_as<std::remove_const_t<T>, Traced>
void for_each_value(T& traced, const F& f) {
  f(traced.loss.mean);
  f(traced.loss.weight);
  for (auto& part : traced.losses) {
    f(part.loss.mean);
    f(part.loss.weight);
  }
  f(traced.prediction);
  for (auto& metric : traced.metrics) {
    for (auto& value : metric.sums) f(value);
    f(metric.scores);
    f(metric.labels);
    f(metric.groups);
  }
}

// Makes the weighted sum of `losses` the `loss`, and each of them a metric before those of the model. Either no loss
// has a weight sum of its own (Loss::weight), or all have the same Value: only then the sum is one mean, and exact at
// any number of ranks. Throws Error otherwise, and for names and factors that cannot be. `batch`: samples of this
// trace.
void combine_losses(Graph& graph, std::int64_t batch, Traced& traced);

using ModelFunction = std::function<Traced(const Inputs& inputs)>;

}  // namespace lockstep::plan
