#include "lockstep/plan/gradient.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep {
namespace {

// Which nodes of the forward part have a trainable parameter among their ancestors.
std::vector<bool> depends_on_parameters(const Graph& graph) {
  std::vector<bool> depends;
  for (const Node& node : graph.nodes()) {
    bool d = node.kind == Node::Kind::Parameter && node.parameter->trainable;
    for (const Value& v : node.inputs) d = d || depends[static_cast<std::size_t>(v.node())];
    depends.push_back(d);
  }
  return depends;
}

class Backward {
 public:
  explicit Backward(Graph& graph)
      : graph_(graph), depends_(depends_on_parameters(graph)), gradients_(graph.nodes().size()) {}

  void accumulate(Value of, Value gradient) {
    if (!gradient || !depends_[static_cast<std::size_t>(of.node())]) return;
    auto& slots = gradients_[static_cast<std::size_t>(of.node())];
    slots.resize(graph_.node(of).outputs.size());
    Value& slot = slots[static_cast<std::size_t>(of.index())];
    slot = slot ? add(slot, gradient) : gradient;
  }

  // Emits the gradient nodes of node `index` and hands the results to its inputs.
  void visit(int index) {
    const auto i = static_cast<std::size_t>(index);
    if (graph_.nodes()[i].kind != Node::Kind::Op || gradients_[i].empty()) return;
    // Copies: appending nodes moves the graph's storage.
    const std::shared_ptr<const Op> op = graph_.nodes()[i].op;
    const std::vector<Value> inputs = graph_.nodes()[i].inputs;
    const Graph::Scope scope(graph_, "grad " + graph_.nodes()[i].place);
    std::vector<Value> outputs;
    for (std::size_t k = 0; k < graph_.nodes()[i].outputs.size(); ++k)
      outputs.emplace_back(&graph_, index, static_cast<int>(k));
    std::vector<bool> needed;
    for (const Value& v : inputs) needed.push_back(depends_[static_cast<std::size_t>(v.node())]);
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

  Value of_parameter(std::size_t node) const { return gradients_[node].empty() ? Value() : gradients_[node][0]; }

 private:
  Graph& graph_;
  std::vector<bool> depends_;
  std::vector<std::vector<Value>> gradients_;
};

}  // namespace

std::vector<ParameterGradient> append_gradient(Graph& graph, const Loss& loss, std::int64_t batch) {
  check(static_cast<bool>(loss.mean), "loss", "the model function returned no loss");
  check(loss.mean.shape().elements() == 1, "loss", "the loss is {}, expected a scalar: take mean() or sum() of it",
        loss.mean.type().str());
  const int forward_nodes = static_cast<int>(graph.nodes().size());
  Backward backward(graph);
  // Seeding with the weight differentiates weight * mean; a mean's own 1/weight then cancels exactly.
  const Value seed = loss.weight ? loss.weight : fill(graph, loss.mean.type(), static_cast<double>(batch));
  backward.accumulate(loss.mean, seed);
  for (int i = forward_nodes - 1; i >= 0; --i) backward.visit(i);

  std::vector<ParameterGradient> result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(forward_nodes); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.kind == Node::Kind::Parameter && node.parameter->trainable) {
      if (const Value g = backward.of_parameter(i)) result.push_back({node.parameter, g});
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.value.node() < b.value.node(); });
  return result;
}

}  // namespace lockstep
