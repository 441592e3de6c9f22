#include "lockstep/ops/table.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

bool are_ids(const Type& type) { return type.dtype == DType::I32 || type.dtype == DType::I64; }

// Returns the node of this table in the graph; the first lookup appends it.
Value scalar_of(Graph& graph, const Table& table) {
  const std::vector<Node>& nodes = graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* op = dynamic_cast<const TableOp*>(nodes[i].op.get());
    if (op != nullptr && &op->table() == &table) return graph.value(static_cast<int>(i), 0);
  }
  return apply_op(std::make_shared<TableOp>(table, graph.dtype()), {graph.step()});
}

}  // namespace

std::vector<Type> TableOp::infer(std::string_view, std::span<const Type>) const { return {{Shape{}, dtype_}}; }

std::vector<Type> TableLookupOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(are_ids(inputs[1]), name(), "{}: ids are {}, expected i32 or i64", path, inputs[1].str());
  std::vector<std::int64_t> dims = inputs[1].shape.dims();
  dims.push_back(table_->width);
  return {{Shape(dims), inputs[0].dtype}};
}

std::vector<Value> TableLookupOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<TableGradientOp>(*table_), {r.gradients[0], r.inputs[1]}), {}};
}

std::string TableLookupOp::attributes() const { return formatted("{} rows", table_->rows); }

std::vector<Type> TableGradientOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape& dy = inputs[0].shape;
  check(are_ids(inputs[1]) && is_floating(inputs[0].dtype) && dy.rank() == inputs[1].shape.rank() + 1 &&
            dy.elements() == inputs[1].shape.elements() * table_->width,
        name(), "{}: gradient is {} for ids {}, expected one row of {} for each id", path, inputs[0].str(),
        inputs[1].str(), table_->width);
  return {{Shape{}, inputs[0].dtype}};
}

std::string TableGradientOp::attributes() const { return formatted("{} rows", table_->rows); }

Value table_lookup(Value ids, const Table& table) {
  check(static_cast<bool>(ids), "table_lookup", "the ids are an empty Value");
  return apply_op(std::make_shared<TableLookupOp>(table), {scalar_of(ids.graph(), table), ids});
}

const Table* trainable_table(const Node& node) {
  const auto* op = dynamic_cast<const TableOp*>(node.op.get());
  return op != nullptr && op->table().trainable ? &op->table() : nullptr;
}

}  // namespace lockstep
