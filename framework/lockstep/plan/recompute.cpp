#include "lockstep/plan/recompute.h"

#include "lockstep/graph/copy.h"
#include "lockstep/ops/batch_norm2d.h"

namespace lockstep {
namespace {

class Recomputation {
 public:
  Recomputation(const Graph& graph, int forward_nodes, Recompute what, const Traced& traced)
      : graph_(graph), forward_nodes_(forward_nodes), what_(what) {
    for (const Node& node : graph.nodes()) kept_.emplace_back(node.outputs.size(), false);
    const auto keep = [&](Value v) {
      if (v) kept(v) = true;
    };
    keep(traced.loss.mean);
    keep(traced.loss.weight);
    keep(traced.prediction);
    for (const auto& [name, v] : traced.counts) keep(v);
    for (const auto& [name, v] : graph.observed()) keep(v);
    for (int i = 0; i < forward_nodes; ++i) {  // what another block reads
      const Node& node = graph.nodes()[static_cast<std::size_t>(i)];
      for (const Value v : node.inputs) {
        if (graph.node(v).block != node.block) keep(v);
      }
    }
  }

  std::unique_ptr<Graph> run(Traced& traced, std::vector<ParameterGradient>& gradients) {
    auto result = graph_.empty_copy();
    GraphCopy copy(graph_, *result);
    for (int i = 0; i < static_cast<int>(graph_.nodes().size()); ++i) {
      if (i >= forward_nodes_) {
        for (const Value v : graph_.nodes()[static_cast<std::size_t>(i)].inputs) again(v, *result, copy);
      }
      copy.copy(i);
    }
    copy.finish();
    traced.loss.mean = copy(traced.loss.mean);
    traced.loss.weight = copy(traced.loss.weight);
    traced.prediction = copy(traced.prediction);
    for (auto& [name, v] : traced.counts) v = copy(v);
    for (ParameterGradient& g : gradients) g.value = copy(g.value);
    return result;
  }

 private:
  std::vector<bool>::reference kept(Value v) {
    return kept_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())];
  }

  static const BatchNorm2dOp* as_norm(const Node& node) { return dynamic_cast<const BatchNorm2dOp*>(node.op.get()); }

  // Not kept, and not computed again yet.
  bool is_dropped(Value v) {
    const Node& node = graph_.node(v);
    if (v.node() >= forward_nodes_ || node.kind != Node::Kind::Op || kept(v)) return false;
    const BatchNorm2dOp* norm = as_norm(node);
    if (norm != nullptr && v.index() > 0) return false;  // statistics: a few numbers per channel
    if (what_ == Recompute::Norms) return norm != nullptr && norm->epilogue() == Epilogue{.relu = true};
    return node.block != 0;
  }

  // Appends what computes a dropped value again, and maps the value to it.
  void again(Value v, Graph& to, GraphCopy& copy) {
    if (!is_dropped(v)) return;
    const Node& node = graph_.node(v);
    for (const Value input : node.inputs) again(input, to, copy);
    kept(v) = true;
    const Graph::Scope scope(to, "again " + node.place);
    std::vector<Value> inputs = copy.inputs(node);
    if (const BatchNorm2dOp* norm = as_norm(node)) {
      const auto statistic = [&](int k) { return copy(graph_.value(v.node(), k)); };
      inputs.insert(inputs.begin() + 3, {statistic(1), statistic(2)});
      copy.map(v, to.apply(std::make_shared<BatchNorm2dNormaliseOp>(norm->epilogue()), std::move(inputs))[0]);
      return;
    }
    const std::vector<Value> outputs = to.apply(node.op, std::move(inputs));
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Value output = graph_.value(v.node(), static_cast<int>(k));
      copy.map(output, outputs[k]);
      kept(output) = true;
    }
  }

  const Graph& graph_;
  int forward_nodes_;
  Recompute what_;
  std::vector<std::vector<bool>> kept_;  // by node and output
};

}  // namespace

std::unique_ptr<Graph> recompute(const Graph& graph, int forward_nodes, Recompute what, Traced& traced,
                                 std::vector<ParameterGradient>& gradients) {
  return Recomputation(graph, forward_nodes, what, traced).run(traced, gradients);
}

}  // namespace lockstep
