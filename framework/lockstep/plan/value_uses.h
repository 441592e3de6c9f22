// The uses of a graph's values, for passes: which nodes are live, which nodes read a value, and which values must
// remain because the caller of the plan reads them.
#pragma once

#include <vector>

#include "lockstep/plan/gradient.h"
#include "lockstep/plan/trace.h"

namespace lockstep::plan {

class ValueUses {
 public:
  ValueUses(const Graph& graph, const Traced& traced, const std::vector<ParameterGradient>& gradients);

  bool live(std::size_t node) const { return live_[node]; }
  const std::vector<int>& readers(Value v) const { return use(v).readers; }  // live nodes, one each time it is an input
  bool kept(Value v) const { return use(v).kept; }
  bool read_once(Value v) const { return use(v).readers.size() == 1 && !use(v).kept; }
  // Whether this node alone reads the value, once or several times.
  bool read_by(Value v, int node) const;

 private:
  struct Use {
    std::vector<int> readers;
    bool kept = false;
  };
  const Use& use(Value v) const {
    return uses_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())];
  }

  std::vector<std::vector<Use>> uses_;  // by node and output
  std::vector<bool> live_;
};

}  // namespace lockstep::plan
