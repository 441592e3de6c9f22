#include "lockstep/ops/gradient.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/graph/module_path.h"
#include "lockstep/ops/derivatives.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

std::size_t at(int node) { return static_cast<std::size_t>(node); }

constexpr std::string_view kOfGradient = "grad ";  // precedes the module path of a node in that of its gradient's nodes

// Returns the path of the module as the model names it, also for the nodes of its gradients.
std::string_view module_path(std::string_view path) {
  while (path.starts_with(kOfGradient)) path.remove_prefix(kOfGradient.size());
  return path;
}

// Describes a value by its origin: "the output of pointwise (exp) in layer1".
std::string origin(Value v) {
  const Node& node = v.graph().node(v);
  switch (node.kind) {
    case Node::Kind::Input:
      return formatted("the field '{}'", node.path);
    case Node::Kind::Parameter:
      return formatted("a parameter {} of {}", v.type().str(), path_or_model(node.path));
    case Node::Kind::Op:
      break;
  }
  const std::string attributes = node.op->attributes();
  return formatted("the output of {}{}{}{} in {}", node.op->name(), attributes.empty() ? "" : " (", attributes,
                   attributes.empty() ? "" : ")", module_path(node.path));
}

// Refuses an op of the library that has no gradient; an op of a user refuses by itself.
void check_has_gradient(const Op& op, std::string_view path) {
  const auto row = std::ranges::find(op_derivatives(), op.name(), &OpDerivatives::op);
  if (row == op_derivatives().end() || row->derivatives != Derivatives::None) return;
  fail(op.name(), "{}: this op has no gradient, and the loss or a gradient() depends on it{}{}", module_path(path),
       row->remedy.empty() ? "" : ": ", row->remedy);
}

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
    const std::string path = graph_.nodes()[i].path;
    check_has_gradient(*op, path);
    const Graph::Scope scope(graph_, std::string(kOfGradient) + path);
    std::vector<Value> outputs;
    for (std::size_t k = 0; k < graph_.nodes()[i].outputs.size(); ++k)
      outputs.emplace_back(&graph_, index, static_cast<int>(k));
    const auto results = op->gradient({inputs, outputs, gradients_[i], needed});
    check(results.size() == inputs.size(), op->name(), "{}: gradient() returned {} values for {} inputs",
          module_path(path), results.size(), inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (results[k]) {
        check(results[k].type() == inputs[k].type(), op->name(), "{}: gradient of input {} is {}, expected {}",
              module_path(path), k, results[k].type().str(), inputs[k].type().str());
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

// Returns the nodes that y needs, each after its inputs, in the order of a walk that takes inputs from the first to the
// last. Gradients from several readers are added in the reverse order. The order in which nodes were appended would not
// do: C++ leaves it to the compiler which operand of f(x) + g(x) is computed first.
std::vector<int> nodes_of(Value y) {
  const std::vector<Node>& nodes = y.graph().nodes();
  std::vector<int> order, open{y.node()};
  std::vector<std::size_t> taken(nodes.size(), 0);  // by node: its inputs that the walk has taken
  std::vector<bool> seen(nodes.size(), false);
  seen[at(y.node())] = true;
  while (!open.empty()) {
    const int node = open.back();
    const std::vector<Value>& inputs = nodes[at(node)].inputs;
    std::size_t& next = taken[at(node)];
    if (next == inputs.size()) {
      order.push_back(node);
      open.pop_back();
    } else if (const int input = inputs[next++].node(); !seen[at(input)]) {
      seen[at(input)] = true;
      open.push_back(input);
    }
  }
  return order;
}

}  // namespace

std::vector<Value> append_gradients(Value y, Value seed, std::span<const Value> targets) {
  const std::vector<int> order = nodes_of(y);
  Backward backward(y.graph(), targets);
  backward.accumulate(y, seed);
  for (auto node = order.rbegin(); node != order.rend(); ++node) backward.visit(*node);
  std::vector<Value> result;
  for (const Value target : targets) result.push_back(backward.of(target));
  return result;
}

std::vector<Value> gradients(Value y, std::span<const Value> xs) {
  const std::string path = axes::path(y);
  for (std::size_t k = 0; k < xs.size(); ++k)
    check(xs[k] && &xs[k].graph() == &y.graph(), "gradient", "{}: input {} is {}, expected one of the value's graph",
          path, k, xs[k] ? "a Value of another graph" : "an empty Value");
  check(is_floating(y.dtype()), "gradient", "{}: the value is {}, expected a floating type", path, y.type().str());
  const DType dtype = y.dtype() == DType::F64 ? DType::F64 : DType::F32;
  check(y.dtype() == dtype, "gradient", "{}: the value is {}, expected f32 or f64: cast it first", path,
        y.type().str());
  std::vector<Value> result = append_gradients(y, fill(y.graph(), y.type(), 1), xs);
  for (std::size_t k = 0; k < result.size(); ++k)
    check(static_cast<bool>(result[k]), "gradient",
          "{}: the value, {}, does not depend on input {}, {}; expected a Value from which the first one was computed "
          "(the same op, applied again, makes another Value)",
          path, origin(y), k, origin(xs[k]));
  return result;
}

Value gradient(Value y, Value x) { return gradients(y, std::span(&x, 1))[0]; }

}  // namespace lockstep
