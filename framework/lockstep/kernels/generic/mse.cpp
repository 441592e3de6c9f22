#include "lockstep/kernels/generic/mse.h"

#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::generic {

template <class T>
void mse_forward(std::int64_t n, const T* x, const T* target, T* loss) {
  const double total = ordered_sum(n, [=](std::int64_t i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(target[i]);
    return d * d;
  });
  *loss = n > 0 ? static_cast<T>(total / static_cast<double>(n)) : T(0);
}

template <class T>
void mse_backward(std::int64_t n, const T* x, const T* target, T dloss, T* dx) {
  if (n == 0) return;
  const T scale = T(2) * (dloss / static_cast<T>(n));
  map2(n, x, target, dx, [scale](T a, T b) { return scale * (a - b); });
}

template void mse_forward<float>(std::int64_t, const float*, const float*, float*);
template void mse_forward<double>(std::int64_t, const double*, const double*, double*);
template void mse_backward<float>(std::int64_t, const float*, const float*, float, float*);
template void mse_backward<double>(std::int64_t, const double*, const double*, double, double*);

}  // namespace lockstep::generic
