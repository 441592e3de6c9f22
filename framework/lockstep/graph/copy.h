// Copies a graph node by node into an empty one, for passes that replace some of its nodes: the pass walks the source
// in order and for each node either copies it or applies nodes of its own and says which values they stand for.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep {

class GraphCopy {
 public:
  // `to` has the mode and types of `from`. Both outlive the copy.
  GraphCopy(const Graph& from, Graph& to);

  void copy(int node);                                 // with its inputs as they are mapped by then
  std::vector<Value> inputs(const Node& node) const;   // likewise, for a replacement
  void map(Value old, Value now) { slot(old) = now; }  // from here on
  Value operator()(Value old) const;                   // invalid for an invalid Value
  // Statistics and observed values, when all nodes are there.
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
