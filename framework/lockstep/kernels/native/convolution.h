// Direct convolution for few channels and small images, whose rows are the lanes: plain f32 x [batch, in_channels,
// in_h, in_w] and y, stride and dilation 1, one group. Sums are taken in f32 along a fixed order and, in weight
// gradients, in double over fixed parts of the batch: results depend on the geometry, never on threads or the level of
// instructions. Immutable after construction, which throws Error for a geometry that supports_convolution refuses;
// running works on OpenMP threads, over samples, and neither allocates nor throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

bool supports_convolution(const ConvolutionGeometry& g);
// Whether these kernels support the geometry and should be the fastest, by the measurements in convolution_rule.cpp;
// with `portable` bits the answer is the same at every level of instructions.
bool direct_forward_wins(const ConvolutionGeometry& g, bool portable = false);
bool direct_backward_data_wins(const ConvolutionGeometry& g, bool portable = false);
bool direct_backward_weights_wins(const ConvolutionGeometry& g, bool portable = false);

// The output positions of each vector, and the packing of samples for them.
struct ConvolutionTiling {
  explicit ConvolutionTiling(const ConvolutionGeometry& g);

  ConvolutionGeometry g;
  ConvolutionTable::Planes planes;
  std::vector<std::int64_t> offsets;  // of vectors of 16 outputs in a packed plane
  std::int64_t out_row = 0;           // stride of rows in a buffer of these vectors
  std::int64_t parts = 1;             // of the batch

  std::int64_t packed_elements() const { return planes.channels * planes.plane; }
  std::int64_t part_begin(std::int64_t part) const { return part * g.batch / parts; }
  void pack(const NativeKernels& kernels, const float* x, float* packed) const;
};

// y = [relu](x * w + bias); or the gradient dx of the same geometry, with dy in place of x.
class DirectConvolution {
 public:
  enum class Direction : std::uint8_t { Forward, BackwardData };
  DirectConvolution(const ConvolutionGeometry& g, Direction direction, const NativeKernels& kernels = native_kernels());
  std::size_t workspace_bytes() const;  // aligned to 64

  struct Arrays {
    const float *x = nullptr, *w = nullptr;
    const float* bias = nullptr;  // or null
    bool relu = false;
    float* y = nullptr;
    float* workspace = nullptr;
  };
  void run(const Arrays& a) const;

 private:
  void pack_weights(const float* w, float* packed) const;
  std::int64_t weight_elements() const;
  std::int64_t part_elements() const;

  const NativeKernels& kernels_;
  Direction direction_;
  ConvolutionTiling tiling_;
  std::vector<ConvolutionPair> pairs_;
};

// dw and, unless null, dbias; both zero for an empty batch.
class DirectWeightGradient {
 public:
  explicit DirectWeightGradient(const ConvolutionGeometry& g, const NativeKernels& kernels = native_kernels());
  std::size_t workspace_bytes() const;  // aligned to 64

  struct Arrays {
    const float *x = nullptr, *dy = nullptr;
    float *dw = nullptr, *dbias = nullptr;
    float* workspace = nullptr;
  };
  void run(const Arrays& a) const;

 private:
  std::int64_t sums() const;  // weights and biases
  std::int64_t dy_elements() const;
  std::int64_t group() const;  // samples packed at a time
  std::int64_t part_elements() const;
  void pack(const Arrays& a, std::int64_t sample, float* x, float* dy) const;
  void run_part(const Arrays& a, std::int64_t part, float* totals, float* scratch) const;

  const NativeKernels& kernels_;
  ConvolutionTiling tiling_;
};

}  // namespace lockstep::kernels::native
