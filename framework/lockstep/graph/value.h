// A symbolic handle: output `index` of a node in a graph. Cheap to copy; valid while the graph lives.
#pragma once

#include "lockstep/graph/type.h"

namespace lockstep {

class Graph;

class Value {
 public:
  Value() = default;
  Value(Graph* graph, int node, int index) : graph_(graph), node_(node), index_(index) {}

  explicit operator bool() const { return graph_ != nullptr; }
  bool operator==(const Value&) const = default;

  Graph& graph() const {  // throws Error for an empty Value, as type(), shape() and dtype() do
    if (graph_ == nullptr) [[unlikely]]
      fail_empty();
    return *graph_;
  }
  int node() const { return node_; }
  int index() const { return index_; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }

 private:
  [[noreturn]] static void fail_empty();

  Graph* graph_ = nullptr;
  int node_ = -1;
  int index_ = 0;
};

}  // namespace lockstep
