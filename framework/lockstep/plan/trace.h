// How a model is handed over: a function that is called once per (input types, mode) with symbolic inputs.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep::plan {

// The inputs of a trace, by name; a batch's fields in training.
class Inputs {
 public:
  // Throws Error for a name that begins with '@': those are the graph's own.
  Inputs(Graph& graph, const std::map<std::string, Type>& types);
  Value operator[](const std::string& name) const;  // throws Error naming the inputs there are
  Graph& graph() const { return graph_; }

 private:
  Graph& graph_;
  std::map<std::string, Value> values_;
};

// What the model function returns: the loss for training and evaluation, counts (f64 scalars such as count_correct(),
// added over all samples), and a prediction for inference. All are optional but the loss of a training step.
struct Traced {
  Loss loss = {};
  std::map<std::string, Value> counts = {};
  Value prediction = {};
};

// Calls f(Value) for all that is in it; values that are not there are invalid.
template <class T, class F>
requires std::same_as<std::remove_const_t<T>, Traced>
void for_each_value(T& traced, const F& f) {
  f(traced.loss.mean);
  f(traced.loss.weight);
  f(traced.prediction);
  for (auto& [name, value] : traced.counts) f(value);
}

using ModelFunction = std::function<Traced(const Inputs& inputs)>;

}  // namespace lockstep::plan
