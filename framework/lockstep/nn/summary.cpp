#include "lockstep/nn/summary.h"

#include <algorithm>
#include <array>
#include <set>

#include "lockstep/core/format.h"

namespace lockstep::nn {
namespace {

// The label of a pointwise op is its expression.
std::string label(const Op& op) { return op.name() == "pointwise" ? op.attributes() : std::string(op.name()); }

std::int64_t bytes_of(const Type& type) {
  return type.shape.elements() * static_cast<std::int64_t>(size_of(type.dtype));
}

std::vector<Type> input_types(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (const Value& v : node.inputs) types.push_back(graph.node(v).outputs[static_cast<std::size_t>(v.index())]);
  return types;
}

void add_parameters(const Module& model, const Graph& graph, Summary& summary) {
  std::set<const Parameter*> seen;
  for (const NamedParameter& named : model.named_parameters()) {
    const Parameter& p = *named.parameter;
    if (!seen.insert(&p).second) continue;
    const std::int64_t elements = p.shape.elements();
    if (p.role == Role::Buffer) {
      summary.buffers += elements;
    } else {
      summary.parameters += elements;
      if (p.trainable) summary.trainable += elements;
    }
    summary.state_bytes += bytes_of({p.shape, p.is_integer ? DType::I64 : graph.dtype()});
  }
}

void add_node(const Graph& graph, const Node& node, std::set<const Parameter*>& seen, SummaryRow& row) {
  const std::string name = label(*node.op);
  row.ops += row.ops.empty() ? name : ", " + name;
  row.output = node.outputs.front();
  row.flops += node.op->flops(input_types(graph, node), node.outputs);
  if (!node.op->is_view()) {
    for (const Type& type : node.outputs) row.bytes += bytes_of(type);
  }
  for (const Value& v : node.inputs) {
    const Parameter* p = graph.node(v).parameter;
    if (p != nullptr && p->role != Role::Buffer && seen.insert(p).second) row.parameters += p->shape.elements();
  }
}

std::string mebibytes(std::int64_t bytes) { return formatted("{:.1f} MiB", static_cast<double>(bytes) / 1048576); }

}  // namespace

Summary summarize(const Module& model, const Graph& graph) {
  Summary summary;
  add_parameters(model, graph, summary);
  std::set<const Parameter*> seen;
  for (const Node& node : graph.nodes()) {
    if (node.kind == Node::Kind::Input && summary.batch == 0 && node.outputs[0].shape.rank() > 0) {
      summary.batch = node.outputs[0].shape[0];
    }
    if (node.kind != Node::Kind::Op) continue;
    if (summary.rows.empty() || summary.rows.back().path != node.path) summary.rows.push_back({.path = node.path});
    add_node(graph, node, seen, summary.rows.back());
  }
  for (const SummaryRow& row : summary.rows) {
    summary.flops += row.flops;
    summary.activation_bytes += row.bytes;
  }
  return summary;
}

Summary summarize(const Module& model, const std::function<Value(Value)>& forward, const Type& input, Mode mode) {
  Graph graph(mode, input.dtype);
  forward(graph.input("image", input));
  return summarize(model, graph);
}

std::string Summary::str() const {
  std::size_t path_width = 7, ops_width = 3, shape_width = 6;
  for (const SummaryRow& row : rows) {
    path_width = std::max(path_width, row.path.size());
    ops_width = std::max(ops_width, row.ops.size());
    shape_width = std::max(shape_width, row.output.shape.str().size());
  }
  const auto line = [&](const std::array<std::string, 6>& c) {
    return formatted("{:<{}}  {:<{}}  {:<{}}  {:>11}  {:>12}  {:>12}\n", c[0], path_width, c[1], ops_width, c[2],
                     shape_width, c[3], c[4], c[5]);
  };
  std::string text = line({"module", "ops", "output", "parameters", "MFLOP", "KiB"});
  for (const SummaryRow& row : rows) {
    text += line({row.path, row.ops, row.output.shape.str(), std::to_string(row.parameters),
                  formatted("{:.3f}", row.flops * 1e-6), formatted("{:.1f}", static_cast<double>(row.bytes) / 1024)});
  }
  text += formatted("parameters {} ({} trainable), buffers {}, together {}\n", parameters, trainable, buffers,
                    mebibytes(state_bytes));
  return text + formatted("batch {}: {:.3f} GFLOP ({:.3f} GFLOP per sample), values {}\n", batch, flops * 1e-9,
                          flops_per_sample() * 1e-9, mebibytes(activation_bytes));
}

}  // namespace lockstep::nn
