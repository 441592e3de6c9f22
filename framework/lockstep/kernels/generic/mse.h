// Mean squared error over n elements, loss = sum (x - target)^2 / n; summed in the fixed order of reduce.h. n = 0 gives
// 0.
#pragma once

#include <cstdint>

namespace lockstep::generic {

template <class T>
void mse_forward(std::int64_t n, const T* x, const T* target, T* loss);
// dx = 2 (x - target) * (dloss / n); the gradient of the target is its negative. dx may be x or target. dloss = n gives
// the gradient of the plain sum, exactly.
template <class T>
void mse_backward(std::int64_t n, const T* x, const T* target, T dloss, T* dx);

}  // namespace lockstep::generic
