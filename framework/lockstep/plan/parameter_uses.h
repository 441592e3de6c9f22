// When a plan's steps read parameters for the first time, and when they are done with one: its gradient is final and
// its value was read for the last time, so that another rank may write a value that is shared. Immutable.
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
