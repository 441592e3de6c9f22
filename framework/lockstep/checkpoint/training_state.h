// The list of all tensors that a resumed run needs, by their names in a checkpoint: weights and buffers "model/NAME",
// optimizer state "optimizer/STATE/NAME". Saving and loading both use this list; tensors are read and written one by
// one. No communication.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/tensor_match.h"
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
    int state;    // index of the rule's state; -1: the parameter's value
    bool shared;  // stored once, in memory that all ranks of a node see

    bool is_optimizer() const { return state >= 0; }
  };

  // Lists the tensors of `store`, which must be allocated; store and rule must outlive this object. Tied weights are
  // two tensors with one state.
  TrainingState(plan::ParameterStore& store, const optim::UpdateRule& rule);

  const std::vector<Entry>& entries() const { return entries_; }  // weights in the order of the model, then states
  std::size_t bytes() const;                                      // size of all tensors together
  Tensor read(const Entry& entry) const;                          // a copy in logical order
  std::vector<io::NamedTensor> read() const;                      // copies of all tensors

  // Replaces all tensors, or the weights alone, and refreshes derived copies. Throws Error with the report of names and
  // shapes (tensor_match.h) before it writes, unless all fit. Ignores tensors with other prefixes. See write_tensors()
  // for tensors without memory.
  void load(const io::TensorSource& source, bool weights_only = false);
  // The two steps of load(), for a caller that loads other tensors too: finds all and throws; then writes. The match
  // refers to this object.
  struct Match {
    TensorMatch weights = {}, states = {};
  };
  Match match(std::span<const io::TensorInfo> tensors, bool weights_only);
  void write(const Match& found, const io::TensorSource& source);

 private:
  plan::ParameterStore& store_;
  std::vector<Entry> entries_;
};

inline constexpr std::string_view kOptimizerPrefix = "optimizer/";

}  // namespace lockstep::checkpoint
