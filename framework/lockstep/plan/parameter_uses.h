// The first step of a plan that reads each bucket, and the step after which a parameter is retired: its gradient is
// final and its value is read no more, so another rank may write a shared value. Immutable.
#pragma once

#include <vector>

#include "lockstep/plan/assembly.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::plan {

class ParameterUses {
 public:
  ParameterUses(const Assembly& assembly, const ParameterStore& store);

  // Buckets of which this step is the first that reads values.
  const std::vector<int>& needs(std::size_t step) const { return needs_[step]; }
  const std::vector<const Parameter*>& retired(std::size_t step) const { return retired_[step]; }  // after it

 private:
  std::vector<std::vector<int>> needs_;
  std::vector<std::vector<const Parameter*>> retired_;
};

}  // namespace lockstep::plan
