// Sends rank 0's tensors, one at a time, to the ranks that write them: to one rank per node if the ranks of a node
// share the tensor's memory, else to all ranks. Each tensor is sent with a checksum. Collective; one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/parallel/exchange/node_memory.h"

namespace lockstep::train {

class TensorBroadcast {
 public:
  // Sends the list of tensors of rank 0's `source`; other ranks' sources are ignored. `is_shared` returns whether the
  // tensor of a name is in shared memory, equal on all ranks. All arguments must outlive this object.
  TensorBroadcast(const comm::Communicator& comm, const parallel::NodeMemory& memory, const io::TensorSource& source,
                  std::function<bool(const std::string&)> is_shared);

  // Returns rank 0's tensors, on all ranks. All ranks must request the same tensors in the same order; a tensor has no
  // memory on a rank that does not write it. All ranks throw AgreedError if rank 0 cannot read a tensor or a rank
  // cannot allocate it. A rank that receives a damaged tensor continues, so that no rank waits for it: see
  // check_received(). Fault point: resume.receive, at the tensor's index.
  io::TensorSource tensors();
  // Throws Error on this rank, with `file` and the tensor's name, if a tensor arrived damaged.
  void check_received(const std::string& file) const;

 private:
  const io::NamedTensor& tensor(std::size_t index);

  const comm::Communicator& comm_;
  const parallel::NodeMemory& memory_;
  const io::TensorSource& source_;
  std::function<bool(const std::string&)> is_shared_;
  std::vector<io::TensorInfo> infos_;
  io::NamedTensor current_;  // the last received tensor
  std::string damage_;       // message about the first tensor that arrived damaged; empty: none
};

}  // namespace lockstep::train
