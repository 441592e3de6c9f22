// Work that oneDNN should do on the calling thread alone, as waking other threads costs more than they save. oneDNN
// decides by the number of OpenMP threads when a primitive is described, and again when it runs, so both happen in a
// SerialScope. The bits of small primitives then do not depend on the number of threads.
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
