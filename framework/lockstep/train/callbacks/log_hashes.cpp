#include "lockstep/train/callbacks/log_hashes.h"

#include "lockstep/comm/agreement.h"

namespace lockstep::train {

void LogHashes::write(std::int64_t step) {
  if (every_ == 0 || step % every_ != 0) return;
  const std::vector<TensorHash> hashes = trainer_.state_hashes();
  comm::collectively(comm_, [&] {
    if (HashLog* log = files_.hashes(); log != nullptr && log->is_due(step)) log->write(step, hashes);
  });
}

}  // namespace lockstep::train
