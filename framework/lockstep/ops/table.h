// Rows of a sparse table by number (graph/table.h). The gradient of a lookup is a node that hands numbers and row
// gradients to the table's store; no tensor of the table's size is made.
#pragma once

#include "lockstep/graph/graph.h"
#include "lockstep/graph/table.h"

namespace lockstep {

// (@step) -> a scalar of value 0 that stands for the table in a graph, so that gradients flow to it. It reads the
// number of the step, as what depends on parameters alone is computed once for many steps.
class TableOp : public Op {
 public:
  TableOp(const Table& table, DType dtype) : table_(&table), dtype_(dtype) {}
  const Table& table() const { return *table_; }
  std::string_view name() const override { return "table"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type>, std::span<const Type>) const override { return 0; }

 private:
  const Table* table_;
  DType dtype_;
};

// (table scalar, ids K) -> (K..., E). Ids are i32 or i64.
class TableLookupOp : public Op {
 public:
  explicit TableLookupOp(const Table& table) : table_(&table) {}
  const Table& table() const { return *table_; }
  std::string_view name() const override { return "table_lookup"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type>, std::span<const Type>) const override { return 0; }
  std::string attributes() const override;

 private:
  const Table* table_;
};

// (dy (K..., E), ids K) -> a scalar of value 0, the gradient of the table's scalar. Hands ids and dy to the store.
class TableGradientOp : public Op {
 public:
  explicit TableGradientOp(const Table& table) : table_(&table) {}
  const Table& table() const { return *table_; }
  std::string_view name() const override { return "table_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type>, std::span<const Type>) const override { return 0; }
  std::string attributes() const override;

 private:
  const Table* table_;
};

// Returns the rows of `table` that the ids name, in the shape of the ids with the width of a row behind it. Throws
// Error where types do not fit. A number outside of the table throws SampleError, which names field, row, position and
// value, when the plan runs.
Value table_lookup(Value ids, const Table& table);

// If the node stands for a trainable table, returns the table; else null.
const Table* trainable_table(const Node& node);

}  // namespace lockstep
