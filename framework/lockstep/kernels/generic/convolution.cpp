#include "lockstep/kernels/generic/convolution.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/gemm.h"

namespace lockstep::kernels::generic {

namespace {

// A geometry with the derived counts the loops need.
struct Sizes : ConvolutionGeometry {
  explicit Sizes(const ConvolutionGeometry& g) : ConvolutionGeometry(g) {
    check(groups > 0 && in_channels % groups == 0 && out_channels % groups == 0, "conv2d",
          "{} groups do not divide {} input and {} output channels", groups, in_channels, out_channels);
  }
  std::int64_t od = out_d(), oh = out_h(), ow = out_w();
  // Elements of a channel: "image" below, a stack of in_d planes.
  std::int64_t in_image = in_d * in_h * in_w, out_image = od * oh * ow, taps = kernel_d * kernel_h * kernel_w;
  std::int64_t group_in = in_channels / groups, group_out = out_channels / groups;
  std::int64_t depth = group_in * taps;  // of the product

  bool padded() const { return padding_d > 0 || padding_h > 0 || padding_w > 0; }
  bool pointwise() const { return taps == 1 && stride_d == 1 && stride_h == 1 && stride_w == 1 && !padded(); }
  // Depthwise and nearly so: a product of this few rows or this little depth costs more to set up than to do.
  bool direct() const { return groups > 1 && (group_in == 1 || group_out == 1 || group_in * group_out <= 16); }
  // Output and input rows are equally long and a tap moves a plane as a whole: o reads o + constant.
  bool shifted() const { return stride_h == 1 && stride_w == 1 && ow == in_w; }
  std::int64_t scratch() const { return pointwise() || direct() ? 0 : depth * out_image; }
};

struct Span {
  std::int64_t begin, end;
};

// The output positions o in [0, out) whose input position o * stride + offset lies in [0, in).
Span valid(std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t offset) {
  const std::int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const std::int64_t end = in - offset <= 0 ? 0 : (in - offset - 1) / stride + 1;
  return {std::min(begin, out), std::max(std::min(begin, out), std::min(end, out))};
}

// A tap of the kernel: its offset of the input position, and the outputs for which it reads the image, not the padding.
struct Tap {
  Tap(const Sizes& s, std::int64_t tap)
      : off_d(tap / s.kernel_w / s.kernel_h * s.dilation_d - s.padding_d),
        off_h(tap / s.kernel_w % s.kernel_h * s.dilation_h - s.padding_h),
        off_w(tap % s.kernel_w * s.dilation_w - s.padding_w),
        planes(valid(s.od, s.in_d, s.stride_d, off_d)),
        rows(valid(s.oh, s.in_h, s.stride_h, off_h)),
        cols(valid(s.ow, s.in_w, s.stride_w, off_w)) {
    if (planes.begin == planes.end || rows.begin == rows.end || cols.begin == cols.end) planes = rows = cols = {0, 0};
  }
  std::int64_t off_d, off_h, off_w;
  Span planes, rows, cols;

  // The row of the input that output plane and row read.
  std::int64_t input_row(const Sizes& s, std::int64_t plane, std::int64_t row) const {
    return (plane * s.stride_d + off_d) * s.in_h + row * s.stride_h + off_h;
  }
  // Of a plane: from the first output that sees the image to the last, with what lies between.
  Span whole(const Sizes& s) const {
    return rows.begin == rows.end ? Span{0, 0} : Span{rows.begin * s.ow + cols.begin, (rows.end - 1) * s.ow + cols.end};
  }
};

// Zeroes the outputs of a plane within whole() that do not see the image: the row ends.
template <class T>
void zero_gaps(const Sizes& s, const Tap& tap, T* out) {
  if (tap.cols.end - tap.cols.begin == s.ow) return;
  for (std::int64_t r = tap.rows.begin; r + 1 < tap.rows.end; ++r) {
    for (std::int64_t o = r * s.ow + tap.cols.end; o < (r + 1) * s.ow + tap.cols.begin; ++o) out[o] = T(0);
  }
}

// Calls row(in_row, shift, out_row, columns) for one kernel tap: the valid output columns of out_row, of which column o
// belongs to in_row[o * stride_w + shift].
template <class In, class Out, class Row>
void for_tap_rows(const Sizes& s, const Tap& tap, In* in, Out* out, const Row& row) {
  for (std::int64_t p = tap.planes.begin; p < tap.planes.end; ++p) {
    for (std::int64_t r = tap.rows.begin; r < tap.rows.end; ++r) {
      row(in + tap.input_row(s, p, r) * s.in_w, tap.off_w, out + (p * s.oh + r) * s.ow, tap.cols);
    }
  }
}
template <class In, class Out, class Row>
void for_tap_rows(const Sizes& s, std::int64_t tap, In* in, Out* out, const Row& row) {
  for_tap_rows(s, Tap(s, tap), in, out, row);
}

// A plane of an im2col row where a tap moves planes as a whole: from the same plane of the input.
template <class T>
void gather_plane(const Sizes& s, const Tap& tap, const T* plane, T* out) {
  const Span whole = tap.whole(s);
  const std::int64_t shift = tap.off_h * s.in_w + tap.off_w;
  std::fill(out, out + whole.begin, T(0));
  std::copy(plane + (whole.begin + shift), plane + (whole.end + shift), out + whole.begin);
  std::fill(out + whole.end, out + s.oh * s.ow, T(0));
  zero_gaps(s, tap, out);
}

// One row of im2col, of one channel's image and one tap.
template <class T>
void gather_tap(const Sizes& s, const Tap& tap, const T* image, T* out) {
  if (s.shifted()) {
    const std::int64_t plane = s.oh * s.ow;
    std::fill(out, out + tap.planes.begin * plane, T(0));
    for (std::int64_t p = tap.planes.begin; p < tap.planes.end; ++p) {
      gather_plane(s, tap, image + (p * s.stride_d + tap.off_d) * s.in_h * s.in_w, out + p * plane);
    }
    std::fill(out + tap.planes.end * plane, out + s.out_image, T(0));
    return;
  }
  if (s.padded()) std::fill(out, out + s.out_image, T(0));
  for_tap_rows(s, tap, image, out, [&](const T* in, std::int64_t shift, T* to, Span cols) {
    if (s.stride_w == 1) {
      std::copy(in + (cols.begin + shift), in + (cols.end + shift), to + cols.begin);
    } else {
      for (std::int64_t o = cols.begin; o < cols.end; ++o) to[o] = in[o * s.stride_w + shift];
    }
  });
}

// The transpose: adds to the image. May zero what `from` holds where the tap sees padding.
template <class T>
void scatter_tap(const Sizes& s, const Tap& tap, T* from, T* image) {
  if (s.shifted()) {
    const Span whole = tap.whole(s);
    const std::int64_t shift = tap.off_h * s.in_w + tap.off_w;
    for (std::int64_t p = tap.planes.begin; p < tap.planes.end; ++p) {
      T* const source = from + p * s.oh * s.ow;
      T* const plane = image + (p * s.stride_d + tap.off_d) * s.in_h * s.in_w;
      zero_gaps(s, tap, source);
      for (std::int64_t o = whole.begin; o < whole.end; ++o) plane[o + shift] += source[o];
    }
    return;
  }
  for_tap_rows(s, tap, image, from, [&](T* in, std::int64_t shift, const T* row, Span cols) {
    if (s.stride_w == 1) {
      for (std::int64_t o = cols.begin; o < cols.end; ++o) in[o + shift] += row[o];
    } else {
      for (std::int64_t o = cols.begin; o < cols.end; ++o) in[o * s.stride_w + shift] += row[o];
    }
  });
}

// col[depth, out_image]: row (channel, tap) holds what that tap reads for each output position, 0 in the padding.
template <class T>
void im2col(const Sizes& s, const T* x, T* col) {
  parallel_for(s.depth, s.out_image, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t d = begin; d < end; ++d) {
      gather_tap(s, Tap(s, d % s.taps), x + d / s.taps * s.in_image, col + d * s.out_image);
    }
  });
}

// The transpose of im2col: adds each row of col to the image it was read from; x is overwritten, col is used up.
template <class T>
void col2im(const Sizes& s, T* col, T* x) {
  parallel_for(s.group_in, s.taps * s.out_image, [&](std::int64_t begin, std::int64_t end) {
    std::fill(x + begin * s.in_image, x + end * s.in_image, T(0));
    for (std::int64_t d = begin * s.taps; d < end * s.taps; ++d) {
      scatter_tap(s, Tap(s, d % s.taps), col + d * s.out_image, x + d / s.taps * s.in_image);
    }
  });
}

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

}  // namespace

std::int64_t convolution_forward_scratch(const ConvolutionGeometry& g) { return Sizes(g).scratch(); }
std::int64_t convolution_backward_data_scratch(const ConvolutionGeometry& g) { return Sizes(g).scratch(); }
std::int64_t convolution_backward_weights_scratch(const ConvolutionGeometry& g) { return Sizes(g).scratch(); }

template <class T>
void convolution_forward(const ConvolutionGeometry& g, const T* x, const T* w, const T* bias, T* y, T* scratch) {
  const Sizes s(g);
  if (s.direct()) return forward_direct(s, x, w, bias, y);
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
      gemm<T>(false, false, s.group_out, s.out_image, s.depth, T(1), w + group * s.group_out * s.depth, s.depth,
              s.pointwise() ? in : scratch, s.out_image, bias ? T(1) : T(0), out, s.out_image);
    }
  }
}

template <class T>
void convolution_backward_data(const ConvolutionGeometry& g, const T* dy, const T* w, T* dx, T* scratch) {
  const Sizes s(g);
  if (s.direct()) return backward_data_direct(s, dy, w, dx);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t group = 0; group < s.groups; ++group) {
      T* in = dx + (n * s.in_channels + group * s.group_in) * s.in_image;
      const T* out = dy + (n * s.out_channels + group * s.group_out) * s.out_image;
      gemm<T>(true, false, s.depth, s.out_image, s.group_out, T(1), w + group * s.group_out * s.depth, s.depth, out,
              s.out_image, T(0), s.pointwise() ? in : scratch, s.out_image);
      if (!s.pointwise()) col2im(s, scratch, in);
    }
  }
}

template <class T>
void convolution_backward_weights(const ConvolutionGeometry& g, const T* x, const T* dy, T* dw, T* scratch) {
  const Sizes s(g);
  if (s.direct()) return backward_weights_direct(s, x, dy, dw);
  if (s.batch == 0) std::fill(dw, dw + s.out_channels * s.depth, T(0));
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t group = 0; group < s.groups; ++group) {
      const T* in = x + (n * s.in_channels + group * s.group_in) * s.in_image;
      const T* out = dy + (n * s.out_channels + group * s.group_out) * s.out_image;
      if (!s.pointwise()) im2col(s, in, scratch);
      gemm<T>(false, true, s.group_out, s.depth, s.out_image, T(1), out, s.out_image, s.pointwise() ? in : scratch,
              s.out_image, n > 0 ? T(1) : T(0), dw + group * s.group_out * s.depth, s.depth);
    }
  }
}

#define LOCKSTEP_INSTANTIATE(T)                                                                           \
  template void convolution_forward<T>(const ConvolutionGeometry&, const T*, const T*, const T*, T*, T*); \
  template void convolution_backward_data<T>(const ConvolutionGeometry&, const T*, const T*, T*, T*);     \
  template void convolution_backward_weights<T>(const ConvolutionGeometry&, const T*, const T*, T*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
