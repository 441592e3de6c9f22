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

// The outputs of the model function: the loss for training and evaluation, counts (f64 scalars such as count_correct(),
// summed over all samples), metrics (metrics/metrics.h), and a prediction for inference. Only a training step needs a
// loss; all else is optional. A run shows and logs metrics; counts are for its program alone.
struct Traced {
  Loss loss = {};
  std::map<std::string, Value> counts = {};
  std::vector<Metric> metrics = {};
  Value prediction = {};
};

// Calls f(Value) for every value; an optional value that is missing is invalid.
template <class T, class F>
requires std::same_as<std::remove_const_t<T>, Traced>
void for_each_value(T& traced, const F& f) {
  f(traced.loss.mean);
  f(traced.loss.weight);
  f(traced.prediction);
  for (auto& [name, value] : traced.counts) f(value);
  for (auto& metric : traced.metrics) {
    for (auto& value : metric.sums) f(value);
    f(metric.scores);
    f(metric.labels);
  }
}

using ModelFunction = std::function<Traced(const Inputs& inputs)>;

}  // namespace lockstep::plan
