// The matrix of a convolution by im2col: the input that each tap of the kernel reads, by output position. Internal to
// convolution.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/core/error.h"
#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::kernels::generic {

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
inline Span valid(std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t offset) {
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

}  // namespace lockstep::kernels::generic
