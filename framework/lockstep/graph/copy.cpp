#include "lockstep/graph/copy.h"

#include "lockstep/core/error.h"

namespace lockstep {

GraphCopy::GraphCopy(const Graph& from, Graph& to) : from_(from), to_(to) {
  for (const Node& node : from.nodes()) values_.emplace_back(node.outputs.size());
}

Value GraphCopy::operator()(Value old) const {
  if (!old) return {};
  const Value now = values_[static_cast<std::size_t>(old.node())][static_cast<std::size_t>(old.index())];
  check(static_cast<bool>(now), "graph", "a pass removed output {} of a {}, which a later node reads", old.index(),
        from_.node(old).op ? from_.node(old).op->name() : "input");
  return now;
}

std::vector<Value> GraphCopy::inputs(const Node& node) const {
  std::vector<Value> mapped;
  for (const Value v : node.inputs) mapped.push_back((*this)(v));
  return mapped;
}

void GraphCopy::copy(int index) {
  const Node& node = from_.nodes()[static_cast<std::size_t>(index)];
  auto& outputs = values_[static_cast<std::size_t>(index)];
  const Graph::Scope scope(to_, node.path);
  const Graph::Block block(to_, node.block);
  switch (node.kind) {
    case Node::Kind::Input:
      outputs = {to_.input(node.path, node.outputs[0])};
      return;
    case Node::Kind::Parameter:
      outputs = {to_.parameter(*node.parameter)};
      return;
    case Node::Kind::Op:
      outputs = to_.apply(node.op, inputs(node));
      if (!node.remark.empty()) to_.set_remark(outputs[0], node.remark);
      return;
  }
}

void GraphCopy::finish() {
  for (const auto& [name, value] : from_.observed()) to_.observe(name, (*this)(value));
  for (RunningStatistics s : from_.statistics()) {
    s.sums = (*this)(s.sums);
    to_.add(std::move(s));
  }
}

}  // namespace lockstep
