// Joins connected pointwise nodes. A node absorbs the nodes of which it is the only reader, if both are in forward or
// both in backward, and in the same block of recomputation.
#include <algorithm>
#include <optional>

#include "lockstep/graph/copy.h"
#include "lockstep/kernels/common/pointwise_program.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/plan/fusion.h"
#include "lockstep/plan/value_uses.h"

namespace lockstep::plan {
namespace {

using pointwise::Expression;
using pointwise::Scalar;

struct Group {
  Expression expression;
  std::vector<Value> inputs;
};

class PointwiseFusion {
 public:
  PointwiseFusion(const Graph& graph, const GraphRoots& roots)
      : graph_(graph),
        roots_(roots),
        uses_(graph, roots.traced, roots.gradients),
        groups_(graph.nodes().size()),
        absorbed_(graph.nodes().size(), false) {
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const auto* op = dynamic_cast<const PointwiseOp*>(graph.nodes()[i].op.get());
      if (op != nullptr && uses_.live(i)) join(static_cast<int>(i), *op);
    }
  }

  std::unique_ptr<Graph> run() {
    auto result = graph_.empty_copy();
    GraphCopy copy(graph_, *result);
    int forward_nodes = -1;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (i == static_cast<std::size_t>(roots_.forward_nodes)) forward_nodes = static_cast<int>(result->nodes().size());
      if (absorbed_[i] || !uses_.live(i)) continue;
      groups_[i] ? emit(static_cast<int>(i), *result, copy) : copy.copy(static_cast<int>(i));
    }
    roots_.forward_nodes = forward_nodes >= 0 ? forward_nodes : static_cast<int>(result->nodes().size());
    copy.finish();
    for_each_value(roots_.traced, [&](Value& v) { v = copy(v); });
    for (ParameterGradient& g : roots_.gradients) g.value = copy(g.value);
    return result;
  }

 private:
  const Node& node(int i) const { return graph_.nodes()[static_cast<std::size_t>(i)]; }

  bool can_join(Value v, int reader) const {
    const Node &from = node(v.node()), &to = node(reader);
    return groups_[static_cast<std::size_t>(v.node())] && v.type() == to.outputs[0] && uses_.read_by(v, reader) &&
           from.block == to.block && (v.node() < roots_.forward_nodes) == (reader < roots_.forward_nodes);
  }

  void join(int reader, const PointwiseOp& op) {
    std::vector<bool> joins(node(reader).inputs.size(), false);
    Group group = joined(reader, op, joins);
    for (std::size_t k = 0; k < joins.size(); ++k) {
      const Value v = node(reader).inputs[k];
      if (joins[k] || !can_join(v, reader)) continue;
      std::vector<bool> more = joins;
      for (std::size_t j = 0; j < more.size(); ++j) more[j] = more[j] || node(reader).inputs[j] == v;
      Group larger = joined(reader, op, more);
      if (!kernels::PointwiseProgram::fits(larger.expression)) continue;
      group = std::move(larger);
      joins = more;
      absorbed_[static_cast<std::size_t>(v.node())] = true;
    }
    groups_[static_cast<std::size_t>(reader)] = std::move(group);
  }

  Group joined(int reader, const PointwiseOp& op, const std::vector<bool>& joins) const {
    Group group;
    const auto input = [&](Value v) {
      const auto found = std::ranges::find(group.inputs, v);
      const auto k = static_cast<int>(found - group.inputs.begin());
      if (found == group.inputs.end()) group.inputs.push_back(v);
      return group.expression.input(k);
    };
    std::vector<Scalar> operands;
    for (std::size_t k = 0; k < joins.size(); ++k) {
      const Value v = node(reader).inputs[k];
      if (!joins[k]) {
        operands.push_back(input(v));
        continue;
      }
      const Group& from = *groups_[static_cast<std::size_t>(v.node())];
      std::vector<Scalar> inner;
      for (const Value w : from.inputs) inner.push_back(input(w));
      operands.push_back(group.expression.append(from.expression, inner));
    }
    group.expression.set_result(group.expression.append(op.expression(), operands));
    return group;
  }

  void emit(int i, Graph& to, GraphCopy& copy) const {
    const Group& group = *groups_[static_cast<std::size_t>(i)];
    const Graph::Scope scope(to, node(i).path);
    const Graph::Block block(to, node(i).block);
    std::vector<int> kept;
    Expression compact = group.expression.compact(kept);
    std::vector<Value> inputs;
    for (const int k : kept) inputs.push_back(copy(group.inputs[static_cast<std::size_t>(k)]));
    if (inputs.empty()) return copy.copy(i);
    auto op = std::make_shared<PointwiseOp>(std::move(compact), node(i).outputs[0].shape);
    copy.map(graph_.value(i, 0), to.apply(std::move(op), std::move(inputs))[0]);
  }

  const Graph& graph_;
  GraphRoots roots_;
  ValueUses uses_;
  std::vector<std::optional<Group>> groups_;  // by node: what it computes
  std::vector<bool> absorbed_;
};

}  // namespace

std::unique_ptr<Graph> fuse_pointwise(const Graph& graph, const GraphRoots& roots) {
  return PointwiseFusion(graph, roots).run();
}

}  // namespace lockstep::plan
