#include "lockstep/nn/pooling.h"

#include <algorithm>

namespace lockstep::nn {
namespace {

template <int Axes>
PoolOptions window_options(const PerAxis<Axes>& kernel, const PerAxis<Axes>& stride, const PerAxis<Axes>& padding,
                           const PerAxis<Axes>& dilation) {
  PoolOptions o;
  for (int i = 0; i < Axes; ++i) {
    o.axes.push_back({.kernel = kernel[i],
                      .stride = stride[i] == 0 ? kernel[i] : stride[i],
                      .padding = padding[i],
                      .dilation = dilation[i]});
  }
  return o;
}

// Windows of one size along every axis of x. Where x has too few axes, the op names what it expects.
PoolOptions equal_windows(Value x, const PoolConfig& c) {
  const int axes = std::max(x.shape().rank() - 2, 1);
  return {.axes = std::vector<PoolAxis>(
              static_cast<std::size_t>(axes),
              PoolAxis{.kernel = c.kernel, .stride = c.stride == 0 ? c.kernel : c.stride, .padding = c.padding}),
          .ceil_mode = c.ceil_mode};
}

}  // namespace

template <int Axes>
MaxPool<Axes>::MaxPool(const Config& c) : options_(window_options(c.kernel, c.stride, c.padding, c.dilation)) {
  options_.ceil_mode = c.ceil_mode;
}

template <int Axes>
Value MaxPool<Axes>::operator()(Value x) const {
  return pool(Pool::Max, x, options_);
}

template <int Axes>
AvgPool<Axes>::AvgPool(const Config& c) : options_(window_options(c.kernel, c.stride, c.padding, PerAxis<Axes>(1))) {
  options_.ceil_mode = c.ceil_mode;
  options_.count_include_pad = c.count_include_pad;
}

template <int Axes>
Value AvgPool<Axes>::operator()(Value x) const {
  return pool(Pool::Average, x, options_);
}

template <int Axes>
Value AdaptiveAvgPool<Axes>::operator()(Value x) const {
  return adaptive_average_pool(x, size_.values());
}

template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class AdaptiveAvgPool<1>;
template class AdaptiveAvgPool<2>;
template class AdaptiveAvgPool<3>;

Value max_pool(Value x, PoolConfig config) { return pool(Pool::Max, x, equal_windows(x, config)); }
Value average_pool(Value x, PoolConfig config) { return pool(Pool::Average, x, equal_windows(x, config)); }

}  // namespace lockstep::nn
