// Microseconds on Zen 4, f32, with one thread and, best of fifteen, with two that have a core each and still spin:
//   inner product 84 x 120, forward      0.32 MFLOP  2.0 | 2.9;  0.65  3.6 | 4.8;  1.3  6.7 | 7.1;  2.6  13.2 | 10
//   its weight gradient                  0.32        2.8 | 5.6;  0.65  4.6 | 6.4;  1.3  8.1 | 8.7;  2.6  15.7 | 13.6
//   3x3 on 16 channels, forward          0.30        1.4 | 3.0;  0.59  2.6 | 3.8;  1.2  5.1 | 4.7;  2.4   9.9 | 7.7
// A thread that went to sleep takes 60 more to wake, so where both are as fast, one is better. What only moves values
// (tanh of 16384 floats: 3.5, of 16: 0.13 | 0.7) is bound by bytes.
#include "lockstep/kernels/onednn/small_work.h"

#include <omp.h>

namespace lockstep::kernels::onednn {
namespace {
constexpr double kSmallFlops = 1e6;
constexpr std::size_t kSmallBytes = 128 << 10;  // read and written
}  // namespace

bool is_small_work(const KernelRequest& request) {
  std::size_t bytes = 0;
  for (const auto* types : {&request.inputs, &request.outputs}) {
    for (const Type& t : *types) bytes += static_cast<std::size_t>(t.shape.elements()) * size_of(t.dtype);
  }
  return bytes <= kSmallBytes && request.op->flops(request.inputs, request.outputs) <= kSmallFlops;
}

SerialScope::SerialScope(bool serial) : threads_(serial ? omp_get_max_threads() : 0) {
  if (serial) omp_set_num_threads(1);
}

SerialScope::~SerialScope() {
  if (threads_ > 0) omp_set_num_threads(threads_);
}

}  // namespace lockstep::kernels::onednn
