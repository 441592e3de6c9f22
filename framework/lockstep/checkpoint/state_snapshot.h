// A copy of weights, buffers and optimizer state in their persistent form, so that training can go on while the copy is
// written to a file. take() is a plain copy by all compute threads, into memory that is allocated once. tensors()
// converts to logical order, one tensor at a time.
#pragma once

#include <vector>

#include "lockstep/checkpoint/training_state.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

class StateSnapshot {
 public:
  // Allocates memory for a copy of `state`. The store must be allocated and must outlive take().
  StateSnapshot(plan::ParameterStore& store, const TrainingState& state);

  // Copies the state, and keeps `more` beside it. The state must not change, and tensors() must not be read, meanwhile.
  void take(std::vector<io::NamedTensor> more = {});
  // Adds tensors of the same state to those of the last take(), behind others; `more` must outlive their use.
  void add(io::TensorSource more) { added_.push_back(std::move(more)); }
  // Returns the tensors of the last take(): the state, then `more`, then those of add(). The source refers to this
  // object alone; the model may be destroyed. One thread at a time.
  io::TensorSource tensors();

 private:
  struct Region {
    const std::byte* source;
    std::size_t bytes, offset;  // offset: in memory_
  };
  struct Entry {
    io::TensorInfo info;
    Layout layout;
    std::size_t offset;
  };
  std::size_t add_region(const std::byte* source, std::size_t bytes);
  const io::NamedTensor& tensor(std::size_t index);

  std::vector<Region> regions_;
  std::vector<Entry> entries_;
  std::vector<io::NamedTensor> more_;
  std::vector<io::TensorSource> added_;
  std::size_t bytes_ = 0;
  AlignedBuffer memory_;
  io::NamedTensor current_;  // the tensor that tensors() returned last
};

}  // namespace lockstep::checkpoint
