// All tensors that training goes on from, as a checkpoint names them: weights and buffers "model/NAME", optimizer state
// "optimizer/STATE/NAME". The one owner of what is saved and loaded; each tensor is read and written by itself. No
// communication.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/tensor_source.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

class TrainingState {
 public:
  struct Entry {
    io::TensorInfo info;
    const Parameter* parameter;
    std::string parameter_name;
    int state;    // of the rule; -1: the value
    bool shared;  // lies once in memory that all ranks of a node see

    bool is_optimizer() const { return state >= 0; }
  };

  // Of a store that is allocated and, like the rule, outlives this. Tied weights are two tensors and have one state.
  TrainingState(plan::ParameterStore& store, const optim::UpdateRule& rule);

  const std::vector<Entry>& entries() const { return entries_; }  // weights in the order of the model, then states
  std::size_t bytes() const;                                      // of all tensors
  Tensor read(const Entry& entry) const;
  std::vector<io::NamedTensor> read() const;  // all of them, in memory

  // Replaces all of it, or the weights alone, and refreshes derived copies. Strict: throws Error with the report of
  // names and shapes (tensor_match.h) before anything is written. Tensors of other prefixes are left alone. See
  // write_tensors() for tensors without memory.
  void load(const io::TensorSource& source, bool weights_only = false);

 private:
  plan::ParameterStore& store_;
  std::vector<Entry> entries_;
};

inline constexpr std::string_view kOptimizerPrefix = "optimizer/";

}  // namespace lockstep::checkpoint
