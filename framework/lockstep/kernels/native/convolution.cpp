#include "lockstep/kernels/native/convolution.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/rounding.h"

namespace lockstep::kernels::native {
namespace {

// The batch is cut into parts of at least eight samples, so that the addition of their sums takes little time.
constexpr std::int64_t kPartSamples = 8, kMostParts = 16;

// Elements of the samples that are packed together and summed in one pass: they fit into a first-level cache.
constexpr std::int64_t kPacked = 16 * 1024;

std::int64_t round_to_lanes(std::int64_t n) { return rounded_up(n, kLanes); }

// The convolution that takes dy to dx, with the kernel turned by 180 degrees.
ConvolutionGeometry transposed(const ConvolutionGeometry& g) {
  return {.batch = g.batch,
          .in_channels = g.out_channels,
          .in_h = g.out_h(),
          .in_w = g.out_w(),
          .out_channels = g.in_channels,
          .kernel_h = g.kernel_h,
          .kernel_w = g.kernel_w,
          .padding_h = g.kernel_h - 1 - g.padding_h,
          .padding_w = g.kernel_w - 1 - g.padding_w};
}

double flops_of_taps(const ConvolutionGeometry& g) {
  return static_cast<double>(g.in_channels * g.out_channels * g.kernel_h * g.kernel_w);
}

}  // namespace

bool supports_convolution(const ConvolutionGeometry& g) {
  return g.is_planar() && g.groups == 1 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
         g.dilation_w == 1 && g.padding_h < g.kernel_h && g.padding_w < g.kernel_w && g.kernel_w <= 8 &&
         g.out_h() > 0 && g.out_w() > 0;
}

ConvolutionTiling::ConvolutionTiling(const ConvolutionGeometry& geometry) : g(geometry) {
  check(supports_convolution(g), "convolution", "a {}x{} kernel on a {}x{} image is none of those that run direct",
        g.kernel_h, g.kernel_w, g.in_h, g.in_w);
  planes = {.channels = g.in_channels,
            .filters = g.out_channels,
            .kernel_h = g.kernel_h,
            .kernel_w = g.kernel_w,
            .stride = g.in_w + 2 * g.padding_w};
  planes.plane = round_to_lanes((g.in_h + 2 * g.padding_h) * planes.stride + kLanes);
  parts = std::clamp<std::int64_t>(g.batch / kPartSamples, 1, kMostParts);
  // Vectors that continue over the ends of rows, or vectors that begin in every row: the smaller number of the two.
  const std::int64_t oh = g.out_h(), ow = g.out_w(), through = (oh - 1) * planes.stride + ow;
  if (round_to_lanes(through) < oh * round_to_lanes(ow)) {
    out_row = planes.stride;
    for (std::int64_t at = 0; at < through; at += kLanes) offsets.push_back(at);
  } else {
    out_row = round_to_lanes(ow);
    for (std::int64_t h = 0; h < oh; ++h) {
      for (std::int64_t w = 0; w < ow; w += kLanes) offsets.push_back(h * planes.stride + w);
    }
  }
}

void ConvolutionTiling::pack(const NativeKernels& kernels, const float* x, float* packed) const {
  kernels.convolution.copy({.planes = g.in_channels,
                            .rows = g.in_h,
                            .width = g.in_w,
                            .from_plane = g.in_h * g.in_w,
                            .from_row = g.in_w,
                            .to_plane = planes.plane,
                            .to_row = planes.stride,
                            .from = x,
                            .to = packed + g.padding_h * planes.stride + g.padding_w,
                            .zeros = true});
}

DirectConvolution::DirectConvolution(const ConvolutionGeometry& g, Direction direction, const NativeKernels& kernels)
    : kernels_(kernels), direction_(direction), tiling_(direction == Direction::Forward ? g : transposed(g)) {
  const auto& [stride, rows] = std::pair(tiling_.planes.stride, tiling_.g.out_h());
  for (std::size_t i = 0; i < tiling_.offsets.size(); i += 2) {
    const std::int64_t first = tiling_.offsets[i];
    const std::int64_t second = i + 1 < tiling_.offsets.size() ? tiling_.offsets[i + 1] : first;
    const std::int64_t top = first / stride, bottom = std::min(rows - 1, (second + kLanes - 1) / stride);
    const std::int64_t begin = std::max<std::int64_t>(0, tiling_.g.padding_h - bottom);
    const std::int64_t end = std::min(tiling_.g.kernel_h, tiling_.g.padding_h + tiling_.g.in_h - top);
    pairs_.push_back({first, second, begin, std::max(begin, end)});
  }
}

std::int64_t DirectConvolution::weight_elements() const {
  const auto& p = tiling_.planes;
  return round_to_lanes(p.channels * p.filters * p.kernel_h * p.kernel_w);
}

std::int64_t DirectConvolution::part_elements() const {
  return tiling_.packed_elements() + tiling_.planes.filters * static_cast<std::int64_t>(pairs_.size()) * 2 * kLanes;
}

std::size_t DirectConvolution::workspace_bytes() const {
  return static_cast<std::size_t>(weight_elements() + tiling_.parts * part_elements()) * sizeof(float);
}

// As [channels][kernel_h][kernel_w][filters]; for the gradient, channels are those of dy and the kernel is turned.
void DirectConvolution::pack_weights(const float* w, float* packed) const {
  const auto& p = tiling_.planes;
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  for (std::int64_t c = 0; c < p.channels; ++c) {
    for (std::int64_t t = 0; t < taps; ++t) {
      for (std::int64_t f = 0; f < p.filters; ++f) {
        *packed++ = direction_ == Direction::Forward ? w[(f * p.channels + c) * taps + t]
                                                     : w[(c * p.filters + f) * taps + taps - 1 - t];
      }
    }
  }
}

void DirectConvolution::run(const Arrays& a) const {
  const ConvolutionGeometry& g = tiling_.g;
  const std::int64_t in = g.in_channels * g.in_h * g.in_w, out_plane = g.out_h() * g.out_w();
  const auto count = static_cast<std::int64_t>(pairs_.size());
  pack_weights(a.w, a.workspace);
  const auto work = static_cast<std::int64_t>(flops_of_taps(g)) * out_plane * g.batch / tiling_.parts;
  parallel_for(tiling_.parts, work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      float* packed = a.workspace + weight_elements() + part * part_elements();
      float* y = packed + tiling_.packed_elements();
      std::fill(packed, y, 0.0F);
      for (std::int64_t n = tiling_.part_begin(part); n < tiling_.part_begin(part + 1); ++n) {
        tiling_.pack(kernels_, a.x + n * in, packed);
        kernels_.convolution.forward({.planes = tiling_.planes,
                                      .pairs = pairs_.data(),
                                      .count = count,
                                      .x = packed,
                                      .w = a.workspace,
                                      .bias = a.bias,
                                      .relu = a.relu,
                                      .y = y});
        kernels_.convolution.copy({.planes = g.out_channels,
                                   .rows = g.out_h(),
                                   .width = g.out_w(),
                                   .from_plane = count * 2 * kLanes,
                                   .from_row = tiling_.out_row,
                                   .to_plane = out_plane,
                                   .to_row = g.out_w(),
                                   .from = y,
                                   .to = a.y + n * g.out_channels * out_plane});
      }
    }
  });
}

DirectWeightGradient::DirectWeightGradient(const ConvolutionGeometry& g, const NativeKernels& kernels)
    : kernels_(kernels), tiling_(g) {}

std::int64_t DirectWeightGradient::sums() const {
  const auto& p = tiling_.planes;
  return p.filters * (p.channels * p.kernel_h * p.kernel_w + 1);
}

// Includes room for the zeros behind the last row.
std::int64_t DirectWeightGradient::dy_elements() const {
  return tiling_.planes.filters * static_cast<std::int64_t>(tiling_.offsets.size()) * kLanes + kLanes;
}

std::int64_t DirectWeightGradient::group() const {
  return std::clamp<std::int64_t>(kPacked / (tiling_.packed_elements() + dy_elements()), 1, kPartSamples);
}

std::int64_t DirectWeightGradient::part_elements() const {
  return group() * (tiling_.packed_elements() + dy_elements()) + sums() * kLanes;
}

std::size_t DirectWeightGradient::workspace_bytes() const {
  return static_cast<std::size_t>(tiling_.parts * (part_elements() + round_to_lanes(sums()))) * sizeof(float);
}

void DirectWeightGradient::pack(const Arrays& a, std::int64_t sample, float* x, float* dy) const {
  const ConvolutionGeometry& g = tiling_.g;
  const std::int64_t out_plane = g.out_h() * g.out_w();
  tiling_.pack(kernels_, a.x + sample * g.in_channels * g.in_h * g.in_w, x);
  kernels_.convolution.copy({.planes = g.out_channels,
                             .rows = g.out_h(),
                             .width = g.out_w(),
                             .from_plane = out_plane,
                             .from_row = g.out_w(),
                             .to_plane = static_cast<std::int64_t>(tiling_.offsets.size()) * kLanes,
                             .to_row = tiling_.out_row,
                             .from = a.dy + sample * g.out_channels * out_plane,
                             .to = dy,
                             .zeros = true});
}

void DirectWeightGradient::run_part(const Arrays& a, std::int64_t part, float* totals, float* scratch) const {
  const std::int64_t x_sample = tiling_.packed_elements(), dy_sample = dy_elements(),
                     end = tiling_.part_begin(part + 1);
  float *x = scratch, *dy = x + group() * x_sample, *lanes = dy + group() * dy_sample;
  std::fill_n(scratch, part_elements(), 0.0F);
  for (std::int64_t n = tiling_.part_begin(part); n < end; n += group()) {
    const std::int64_t samples = std::min(group(), end - n);
    for (std::int64_t s = 0; s < samples; ++s) pack(a, n + s, x + s * x_sample, dy + s * dy_sample);
    kernels_.convolution.weights({.planes = tiling_.planes,
                                  .offsets = tiling_.offsets.data(),
                                  .count = static_cast<std::int64_t>(tiling_.offsets.size()),
                                  .samples = samples,
                                  .x_sample = x_sample,
                                  .dy_sample = dy_sample,
                                  .x = x,
                                  .dy = dy,
                                  .sums = lanes,
                                  .bias_sums = lanes + (sums() - tiling_.planes.filters) * kLanes});
  }
  kernels_.convolution.fold(sums(), lanes, totals);
}

void DirectWeightGradient::run(const Arrays& a) const {
  const ConvolutionGeometry& g = tiling_.g;
  const std::int64_t stride = round_to_lanes(sums()), weights = sums() - g.out_channels;
  float* scratch = a.workspace + tiling_.parts * stride;
  const auto work = static_cast<std::int64_t>(flops_of_taps(g)) * g.out_h() * g.out_w() * g.batch / tiling_.parts;
  parallel_for(tiling_.parts, work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part)
      run_part(a, part, a.workspace + part * stride, scratch + part * part_elements());
  });
  for (std::int64_t i = 0; i < sums(); ++i) {
    double total = 0;
    for (std::int64_t part = 0; part < tiling_.parts; ++part)
      total += static_cast<double>(a.workspace[part * stride + i]);
    if (i < weights) {
      a.dw[i] = static_cast<float>(total);
    } else if (a.dbias != nullptr) {
      a.dbias[i - weights] = static_cast<float>(total);
    }
  }
}

}  // namespace lockstep::kernels::native
