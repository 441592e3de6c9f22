// A copy of weights, buffers and optimizer state as they lie in memory, so that training can go on while it is written.
// Taking it is a plain copy, on all compute threads, into memory that stays; putting tensors into logical order is left
// to whoever reads them, one tensor at a time.
#pragma once

#include <vector>

#include "lockstep/checkpoint/training_state.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

class StateSnapshot {
 public:
  // Of a store that is allocated and outlives take(), and the state in it; takes the memory.
  StateSnapshot(plan::ParameterStore& store, const TrainingState& state);

  // At a fence, with nobody reading tensors(). `more` are kept beside the store's.
  void take(std::vector<io::NamedTensor> more = {});
  // The tensors of the state and `more`, as of the last take(); refers to this, and to nothing else: the model may be
  // gone. Any one thread.
  io::TensorSource tensors();
  std::size_t bytes() const { return bytes_; }

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
  std::size_t bytes_ = 0;
  AlignedBuffer memory_;
  io::NamedTensor current_;  // what tensors() handed out last
};

}  // namespace lockstep::checkpoint
