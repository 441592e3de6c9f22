#include "lockstep/ops/gradient.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep {
namespace {

std::size_t at(int node) { return static_cast<std::size_t>(node); }

class Backward {
 public:
  Backward(Graph& graph, std::span<const Value> targets)
      : graph_(graph), depends_(graph.nodes().size(), false), gradients_(graph.nodes().size()) {
    for (const Value v : targets) depends_[at(v.node())] = true;
    for (std::size_t i = 0; i < depends_.size(); ++i) {
      for (const Value v : graph.nodes()[i].inputs) depends_[i] = depends_[i] || depends_[at(v.node())];
    }
  }

  void accumulate(Value of, Value gradient) {
    if (!gradient || !depends_[at(of.node())]) return;
    auto& slots = gradients_[at(of.node())];
    slots.resize(graph_.node(of).outputs.size());
    Value& slot = slots[static_cast<std::size_t>(of.index())];
    slot = slot ? add(slot, gradient) : gradient;
  }

  // Appends the gradient nodes of node `index` and adds the results to the gradients of its inputs.
  void visit(int index) {
    const std::size_t i = at(index);
    if (graph_.nodes()[i].kind != Node::Kind::Op || gradients_[i].empty()) return;
    // Copies: appending nodes moves the graph's storage.
    const std::shared_ptr<const Op> op = graph_.nodes()[i].op;
    const std::vector<Value> inputs = graph_.nodes()[i].inputs;
    std::vector<bool> needed;
    for (const Value& v : inputs) needed.push_back(depends_[at(v.node())]);
    if (std::ranges::find(needed, true) == needed.end()) return;  // a target itself
    const Graph::Scope scope(graph_, "grad " + graph_.nodes()[i].path);
    std::vector<Value> outputs;
    for (std::size_t k = 0; k < graph_.nodes()[i].outputs.size(); ++k)
      outputs.emplace_back(&graph_, index, static_cast<int>(k));
    const auto results = op->gradient({inputs, outputs, gradients_[i], needed});
    check(results.size() == inputs.size(), op->name(), "gradient() returned {} values for {} inputs", results.size(),
          inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (results[k]) {
        check(results[k].type() == inputs[k].type(), op->name(), "gradient of input {} is {}, expected {}", k,
              results[k].type().str(), inputs[k].type().str());
      }
      accumulate(inputs[k], results[k]);
    }
  }

  Value of(Value target) const {
    const auto& slots = gradients_[at(target.node())];
    return slots.empty() ? Value() : slots[static_cast<std::size_t>(target.index())];
  }

 private:
  Graph& graph_;
  std::vector<bool> depends_;                  // by node: on a target
  std::vector<std::vector<Value>> gradients_;  // by node and output
};

}  // namespace

std::vector<Value> append_gradients(Value y, Value seed, std::span<const Value> targets) {
  Graph& graph = y.graph();
  const int end = static_cast<int>(graph.nodes().size());
  Backward backward(graph, targets);
  backward.accumulate(y, seed);
  for (int i = end - 1; i >= 0; --i) backward.visit(i);
  std::vector<Value> result;
  for (const Value target : targets) result.push_back(backward.of(target));
  return result;
}

std::vector<Value> gradients(Value y, std::span<const Value> xs) {
  check(is_floating(y.dtype()), "gradient", "the value is {}, expected a floating type", y.type().str());
  const DType dtype = y.dtype() == DType::F64 ? DType::F64 : DType::F32;
  check(y.dtype() == dtype, "gradient", "the value is {}, expected f32 or f64: cast it first", y.type().str());
  const std::vector<Value> result = append_gradients(y, fill(y.graph(), y.type(), 1), xs);
  for (std::size_t k = 0; k < result.size(); ++k)
    check(static_cast<bool>(result[k]), "gradient", "the value does not depend on input {}", k);
  return result;
}

Value gradient(Value y, Value x) { return gradients(y, std::span(&x, 1))[0]; }

}  // namespace lockstep
