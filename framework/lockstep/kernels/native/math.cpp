#include "lockstep/kernels/native/math.h"

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

void exp_all(std::int64_t n, const double* x, double* y) {
  native_kernels().pointwise_f64.run[static_cast<int>(pointwise::Code::Exp)](n, x, nullptr, nullptr, y);
}

}  // namespace lockstep::kernels::native
