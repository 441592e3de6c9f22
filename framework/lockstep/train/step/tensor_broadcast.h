// Sends rank 0's tensors to the ranks that write them, one tensor at a time: where the ranks of a node share a tensor's
// memory, to one rank of each node, else to all. A checksum goes along with each tensor. Collective; one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/parallel/node_memory.h"

namespace lockstep::train {

class TensorBroadcast {
 public:
  // `source` is rank 0's, and ignored elsewhere; its list of tensors is sent now. All outlive this. `is_shared` says of
  // a tensor's name whether it lies in common memory; the same on all ranks.
  TensorBroadcast(const comm::Communicator& comm, const parallel::NodeMemory& memory, const io::TensorSource& source,
                  std::function<bool(const std::string&)> is_shared);

  // Rank 0's list, on all ranks. All ranks ask for the same tensors in the same order; a tensor is without memory on a
  // rank that does not write it. Where rank 0 cannot read a tensor or a rank has no memory for it, all ranks throw
  // AgreedError. Where a tensor arrives damaged, the rank goes on, so that no rank waits for it: see check_received().
  // Fault point: resume.receive, at the tensor's index.
  io::TensorSource tensors();
  // Throws Error of this rank, naming the tensor, if one arrived damaged; `place` begins the message.
  void check_received(const std::string& place) const;

 private:
  const io::NamedTensor& tensor(std::size_t index);

  const comm::Communicator& comm_;
  const parallel::NodeMemory& memory_;
  const io::TensorSource& source_;
  std::function<bool(const std::string&)> is_shared_;
  std::vector<io::TensorInfo> infos_;
  io::NamedTensor current_;  // received last
  std::string damage_;       // of the first tensor that arrived damaged
};

}  // namespace lockstep::train
