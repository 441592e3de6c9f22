// Copies a graph node by node into an empty graph, for passes that replace some nodes. The pass walks the source in
// order; for each node it either copies the node, or applies other nodes and maps the old values to theirs.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep {

class GraphCopy {
 public:
  // `to` has the mode and types of `from`. Both outlive the copy.
  GraphCopy(const Graph& from, Graph& to);

  void copy(int node);                                 // with its inputs as mapped so far
  std::vector<Value> inputs(const Node& node) const;   // as mapped so far, for a replacement
  void map(Value old, Value now) { slot(old) = now; }  // `now` stands for `old` from here on
  Value operator()(Value old) const;                   // the mapped value; invalid for an invalid one
  // Carries over statistics and observed values; after the last node.
  void finish();

 private:
  Value& slot(Value old) {
    return values_[static_cast<std::size_t>(old.node())][static_cast<std::size_t>(old.index())];
  }
  const Graph& from_;
  Graph& to_;
  std::vector<std::vector<Value>> values_;
};

}  // namespace lockstep
