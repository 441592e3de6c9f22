// The op of a graph node as its class, for passes that look for patterns.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep::plan {

// Null if the node has no op, or one of another class.
template <class T>
const T* as(const Node& node) {
  return dynamic_cast<const T*>(node.op.get());
}

}  // namespace lockstep::plan
