#include "lockstep/kernels/generic/convolution.h"

#include <algorithm>

#include "lockstep/kernels/generic/convolution_columns.h"
#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::kernels::generic {

namespace {

template <class T>
void forward_direct(const Sizes& s, const T* x, const T* w, const T* bias, T* y) {
  const auto plane = [&](std::int64_t n, std::int64_t oc) {
    T* out = y + (n * s.out_channels + oc) * s.out_image;
    std::fill(out, out + s.out_image, bias ? bias[oc] : T(0));
    const T* in = x + (n * s.in_channels + oc / s.group_out * s.group_in) * s.in_image;
    for (std::int64_t d = 0; d < s.depth; ++d) {
      const T weight = w[oc * s.depth + d];
      for_tap_rows(s, d % s.taps, in + d / s.taps * s.in_image, out,
                   [&](const T* row, std::int64_t shift, T* to, Span cols) {
                     if (s.stride_w == 1) {
                       for (std::int64_t o = cols.begin; o < cols.end; ++o) to[o] += weight * row[o + shift];
                     } else {
                       for (std::int64_t o = cols.begin; o < cols.end; ++o) {
                         to[o] += weight * row[o * s.stride_w + shift];
                       }
                     }
                   });
    }
  };
  parallel_for(s.batch * s.out_channels, s.depth * s.out_image, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) plane(i / s.out_channels, i % s.out_channels);
  });
}

template <class T>
void backward_data_direct(const Sizes& s, const T* dy, const T* w, T* dx) {
  const auto plane = [&](std::int64_t n, std::int64_t ic) {
    T* in = dx + (n * s.in_channels + ic) * s.in_image;
    std::fill(in, in + s.in_image, T(0));
    const std::int64_t first = ic / s.group_in * s.group_out, inner = ic % s.group_in;
    for (std::int64_t oc = first; oc < first + s.group_out; ++oc) {
      const T* out = dy + (n * s.out_channels + oc) * s.out_image;
      for (std::int64_t tap = 0; tap < s.taps; ++tap) {
        const T weight = w[oc * s.depth + inner * s.taps + tap];
        for_tap_rows(s, tap, in, out, [&](T* row, std::int64_t shift, const T* from, Span cols) {
          if (s.stride_w == 1) {
            for (std::int64_t o = cols.begin; o < cols.end; ++o) row[o + shift] += weight * from[o];
          } else {
            for (std::int64_t o = cols.begin; o < cols.end; ++o) row[o * s.stride_w + shift] += weight * from[o];
          }
        });
      }
    }
  };
  parallel_for(s.batch * s.in_channels, s.group_out * s.taps * s.out_image, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) plane(i / s.in_channels, i % s.in_channels);
  });
}

template <class T>
void backward_weights_direct(const Sizes& s, const T* x, const T* dy, T* dw) {
  constexpr std::int64_t kLanes = 8;  // fixed: the order of a sum must not follow the machine
  const auto weight = [&](std::int64_t oc, std::int64_t d) {
    double total = 0;
    const Tap tap(s, d % s.taps);
    const std::int64_t ic = oc / s.group_out * s.group_in + d / s.taps;
    for (std::int64_t n = 0; n < s.batch; ++n) {
      T lanes[kLanes] = {};
      for_tap_rows(s, tap, x + (n * s.in_channels + ic) * s.in_image, dy + (n * s.out_channels + oc) * s.out_image,
                   [&](const T* row, std::int64_t shift, const T* from, Span cols) {
                     std::int64_t o = cols.begin;
                     for (; s.stride_w == 1 && o + kLanes <= cols.end; o += kLanes) {
                       for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += row[o + l + shift] * from[o + l];
                     }
                     for (; o < cols.end; ++o) lanes[o & (kLanes - 1)] += row[o * s.stride_w + shift] * from[o];
                   });
      for (T lane : lanes) total += static_cast<double>(lane);
    }
    return total;
  };
  parallel_for(s.out_channels * s.depth, s.batch * s.out_image, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) dw[i] = static_cast<T>(weight(i / s.depth, i % s.depth));
  });
}

// The product of one sample and group in each direction; with im2col its scratch memory lies behind the columns.
MatrixProduct forward_product(const Sizes& s, MatrixProduct::Way way) {
  return {way, {.transpose_a = false, .transpose_b = false, .m = s.group_out, .n = s.out_image, .k = s.depth}};
}
MatrixProduct backward_data_product(const Sizes& s, MatrixProduct::Way way) {
  return {way, {.transpose_a = true, .transpose_b = false, .m = s.depth, .n = s.out_image, .k = s.group_out}};
}
MatrixProduct backward_weights_product(const Sizes& s, MatrixProduct::Way way) {
  return {way, {.transpose_a = false, .transpose_b = true, .m = s.group_out, .n = s.depth, .k = s.out_image}};
}
std::int64_t scratch_of(const Sizes& s, const MatrixProduct& product) {
  return s.direct() ? 0 : s.scratch() + product.scratch();
}

}  // namespace

std::int64_t convolution_forward_scratch(const ConvolutionGeometry& g, MatrixProduct::Way way) {
  const Sizes s(g);
  return scratch_of(s, forward_product(s, way));
}
std::int64_t convolution_backward_data_scratch(const ConvolutionGeometry& g, MatrixProduct::Way way) {
  const Sizes s(g);
  return scratch_of(s, backward_data_product(s, way));
}
std::int64_t convolution_backward_weights_scratch(const ConvolutionGeometry& g, MatrixProduct::Way way) {
  const Sizes s(g);
  return scratch_of(s, backward_weights_product(s, way));
}

template <class T>
void convolution_forward(const ConvolutionGeometry& g, const T* x, const T* w, const T* bias, T* y, T* scratch,
                         MatrixProduct::Way way) {
  const Sizes s(g);
  if (s.direct()) return forward_direct(s, x, w, bias, y);
  const MatrixProduct product = forward_product(s, way);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t group = 0; group < s.groups; ++group) {
      const T* in = x + (n * s.in_channels + group * s.group_in) * s.in_image;
      T* out = y + (n * s.out_channels + group * s.group_out) * s.out_image;
      if (!s.pointwise()) im2col(s, in, scratch);
      if (bias) {
        for (std::int64_t o = 0; o < s.group_out; ++o) {
          std::fill(out + o * s.out_image, out + (o + 1) * s.out_image, bias[group * s.group_out + o]);
        }
      }
      product.run<T>({w + group * s.group_out * s.depth, s.depth}, {s.pointwise() ? in : scratch, s.out_image},
                     bias != nullptr, {out, s.out_image}, scratch + s.scratch());
    }
  }
}

template <class T>
void convolution_backward_data(const ConvolutionGeometry& g, const T* dy, const T* w, T* dx, T* scratch,
                               MatrixProduct::Way way) {
  const Sizes s(g);
  if (s.direct()) return backward_data_direct(s, dy, w, dx);
  const MatrixProduct product = backward_data_product(s, way);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t group = 0; group < s.groups; ++group) {
      T* in = dx + (n * s.in_channels + group * s.group_in) * s.in_image;
      const T* out = dy + (n * s.out_channels + group * s.group_out) * s.out_image;
      product.run<T>({w + group * s.group_out * s.depth, s.depth}, {out, s.out_image}, false,
                     {s.pointwise() ? in : scratch, s.out_image}, scratch + s.scratch());
      if (!s.pointwise()) col2im(s, scratch, in);
    }
  }
}

template <class T>
void convolution_backward_weights(const ConvolutionGeometry& g, const T* x, const T* dy, T* dw, T* scratch,
                                  MatrixProduct::Way way) {
  const Sizes s(g);
  if (s.direct()) return backward_weights_direct(s, x, dy, dw);
  if (s.batch == 0) std::fill(dw, dw + s.out_channels * s.depth, T(0));
  const MatrixProduct product = backward_weights_product(s, way);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t group = 0; group < s.groups; ++group) {
      const T* in = x + (n * s.in_channels + group * s.group_in) * s.in_image;
      const T* out = dy + (n * s.out_channels + group * s.group_out) * s.out_image;
      if (!s.pointwise()) im2col(s, in, scratch);
      product.run<T>({out, s.out_image}, {s.pointwise() ? in : scratch, s.out_image}, n > 0,
                     {dw + group * s.group_out * s.depth, s.depth}, scratch + s.scratch());
    }
  }
}

#define LOCKSTEP_INSTANTIATE(T)                                                                          \
  template void convolution_forward<T>(const ConvolutionGeometry&, const T*, const T*, const T*, T*, T*, \
                                       MatrixProduct::Way);                                              \
  template void convolution_backward_data<T>(const ConvolutionGeometry&, const T*, const T*, T*, T*,     \
                                             MatrixProduct::Way);                                        \
  template void convolution_backward_weights<T>(const ConvolutionGeometry&, const T*, const T*, T*, T*,  \
                                                MatrixProduct::Way);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
