// Work for which oneDNN is to use no thread but the caller's: waking others costs more than they would save. oneDNN
// decides when a primitive is described, and again when it runs, by how many threads OpenMP offers; so both happen in a
// SerialScope. Small primitives' bits then do not depend on the number of threads.
#pragma once

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::onednn {

bool is_small_work(const KernelRequest& request);

// While it lives, if `serial`, the calling thread's parallel regions have one thread.
class SerialScope {
 public:
  explicit SerialScope(bool serial);
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  int threads_;  // to be restored; 0: nothing is
};

}  // namespace lockstep::kernels::onednn
