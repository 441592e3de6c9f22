// GFLOP/s on one core of a Xeon with AVX-512 for (samples, out, in): oneDNN 2.6 with the weights' layout left to it |
// oneDNN with plain weights | OpenBLAS 0.3.21 | these kernels; forward, backward data, backward weights:
TABLE_PENDING
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/linear.h"

namespace lockstep::kernels::native {

Place product_place(const KernelRequest& r) {
  constexpr std::int64_t kManySamples = 256;
  if (native_level() == "baseline" || r.dtype() == DType::F64) return Place::Last;
  const std::string_view op = r.op->name();
  const bool many = r.inputs[0].shape[0] >= kManySamples;
  return many && (op == "linear" || op == "linear_backward_weights") ? Place::First : Place::Behind;
}

}  // namespace lockstep::kernels::native
