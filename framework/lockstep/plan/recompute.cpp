#include "lockstep/plan/recompute.h"

#include "lockstep/graph/copy.h"
#include "lockstep/ops/batch_norm2d_sum.h"
#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/plan/node_op.h"

namespace lockstep::plan {
namespace {

class Recomputation {
 public:
  Recomputation(const Graph& graph, int forward_nodes, Recompute what, const Traced& traced)
      : graph_(graph), forward_nodes_(forward_nodes), what_(what) {
    for (const Node& node : graph.nodes()) kept_.emplace_back(node.outputs.size(), false);
    const auto keep = [&](Value v) {
      if (v) kept(v) = true;
    };
    for_each_value(traced, keep);
    for (const auto& [name, v] : graph.observed()) keep(v);
    if (what == Recompute::Norms) keep_all_but_norms();
    if (what == Recompute::Blocks) keep_between_blocks();
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
    for_each_value(traced, [&](Value& v) { v = copy(v); });
    for (ParameterGradient& g : gradients) g.value = copy(g.value);
    return result;
  }

 private:
  std::vector<bool>::reference kept(Value v) {
    return kept_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())];
  }

  // A normalised value takes one pass over memory, given the result of the convolution and the residual. If the
  // residual is not kept either, it takes passes too; a few are cheap. Each value is computed again once. Large values
  // may take more passes: they are of the first layers, so backward comes to them when it has freed the memory of the
  // layers behind, and has room for a chain of values.
  void keep_all_but_norms() {
    constexpr int kPasses = 2, kPassesOfLarge = 4;
    constexpr double kLarge = 6 << 20;                                     // bytes
    std::vector<int> passes(static_cast<std::size_t>(forward_nodes_), 0);  // by node: from kept values to output 0
    for (int i = 0; i < forward_nodes_; ++i) {
      const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
      const Epilogue* norm = as_norm(node);
      int& needed = passes[static_cast<std::size_t>(i)];
      if (norm != nullptr) {
        const bool residual = norm->residual;
        needed = 1 + (residual ? passes[static_cast<std::size_t>(node.inputs.back().node())] : 0);
        const bool is_large = bytes_of(node.outputs[0]) >= kLarge;
        if (!kept(graph_.value(i, 0)) && needed <= (is_large ? kPassesOfLarge : kPasses)) continue;
      }
      needed = 0;
      for (std::size_t k = 0; k < node.outputs.size(); ++k) kept(graph_.value(i, static_cast<int>(k))) = true;
    }
  }

  static double bytes_of(const Type& t) {
    return static_cast<double>(t.shape.elements()) * static_cast<double>(size_of(t.dtype));
  }

  // Keeps the values that another block reads, or a node outside of all blocks.
  void keep_between_blocks() {
    for (int i = 0; i < forward_nodes_; ++i) {
      const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
      for (const Value v : node.inputs) {
        if (graph_.node(v).block != node.block || node.block == 0) kept(v) = true;
      }
    }
  }

  // The epilogue of a node that normalises by statistics which it leaves as outputs 1 and 2; null for others.
  static const Epilogue* as_norm(const Node& node) {
    if (const auto* op = as<BatchNorm2dOp>(node)) return &op->epilogue();
    if (const auto* op = as<BatchNorm2dSyncOp>(node)) return &op->epilogue();
    static constexpr Epilogue kSum{.residual = true, .relu = true};
    return as<BatchNorm2dSumOp>(node) != nullptr ? &kSum : nullptr;
  }

  // Whether the value is not kept, and not yet computed again.
  bool is_dropped(Value v) {
    const Node& node = graph_.node(v);
    if (v.node() >= forward_nodes_ || node.kind != Node::Kind::Op || kept(v)) return false;
    const bool statistic = (as_norm(node) != nullptr && v.index() > 0) ||  // a few numbers per channel
                           as<BatchNorm2dStatisticsOp>(node) != nullptr;
    return !statistic && !node.op->is_collective() && (what_ == Recompute::Norms || node.block != 0);
  }

  // Appends the nodes that compute a dropped value again, and maps the value to the new one.
  void again(Value v, Graph& to, GraphCopy& copy) {
    if (!is_dropped(v)) return;
    const Node& node = graph_.node(v);
    for (const Value input : node.inputs) again(input, to, copy);
    kept(v) = true;
    const Graph::Scope scope(to, "again " + node.path);
    std::vector<Value> inputs = copy.inputs(node);
    if (const Epilogue* norm = as_norm(node)) {
      std::vector<Value> from(inputs.begin(), inputs.begin() + 3);  // x, gamma, beta
      for (const int k : {1, 2}) from.push_back(copy(graph_.value(v.node(), k)));
      const std::ptrdiff_t residual = as<BatchNorm2dSyncOp>(node) != nullptr ? 4 : 3;  // behind the moments
      from.insert(from.end(), inputs.begin() + residual, inputs.end());
      std::shared_ptr<const Op> op = std::make_shared<BatchNorm2dNormaliseOp>(*norm);
      if (as<BatchNorm2dSumOp>(node) != nullptr) op = std::make_shared<BatchNorm2dSumNormaliseOp>();
      copy.map(v, to.apply(std::move(op), std::move(from))[0]);
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

}  // namespace lockstep::plan
