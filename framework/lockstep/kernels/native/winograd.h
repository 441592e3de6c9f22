// Winograd's convolutions F(4x4, 3x3) and F(2x2, 3x3) in f32 (weight gradients also of bf16 images): 3x3 kernels with
// stride and dilation 1, one group, padding 0 to 2 and images of any size, forward and both gradients. Over three axes
// (a kernel of depth 1 to 3) each slice of the output is the sum of such convolutions of neighbouring slices of the
// input. x and y are in blocks of 16 channels (nChw16c, nCdhw16c), weights and their gradient in blocks [16 in][16 out]
// (OIhw16i16o, OIdhw16i16o), for all three directions; the channels that fill a block up are 0 in inputs, and are
// written as 0. Tiles go through transform, products and transform back in groups that stay in the second-level cache.
// Each sum runs in an order that the geometry fixes: over chunks of kWinogradChunk channels, and in weight gradients
// over parts of the tiles. Threads, levels and block sizes change no bit. Immutable after construction; running works
// on OpenMP threads, and neither allocates nor throws. The workspace is for as many threads as OpenMP has at
// construction; running on more or fewer is correct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/graph/layout.h"
#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/native/memory_ahead.h"
#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/kernels/native/winograd_norm.h"
#include "lockstep/kernels/options.h"

namespace lockstep::kernels::native {

inline constexpr std::int64_t kWinogradChunk = 64;  // channels of an inner sum; of volumes, pairs of channel and slice

bool supports_winograd(const ConvolutionGeometry& g);

// Winograd's tiles by the measurements in winograd_rule.cpp: 4, 2, or 0 where a direct convolution is faster or the
// options refuse transforms that round so much.
int winograd_tile(const ConvolutionGeometry& g, const KernelOptions& options);

// Weights of blocks [16 in][16 out].
Layout winograd_weight_layout(const Shape& weight);

// Sizes in blocks of 16 channels and in tiles, as for a convolution that takes `in` to `out`.
struct WinogradShape {
  WinogradShape(const ConvolutionGeometry& g, int tile, const NativeKernels& kernels);

  ConvolutionGeometry g;
  const WinogradTable* table;
  std::int64_t size, planes;  // of a tile: outputs along an axis; transformed numbers
  std::int64_t in_blocks, out_blocks, rows, columns, tiles;
  // What a sum runs over: for each block of inputs, the slices of the kernel. Source s is slice s % kernel_d of block
  // s / kernel_d. Weights of 3x3 taps are numbered by block of outputs and source.
  std::int64_t sources;

  std::int64_t in_image() const { return g.in_d * g.in_h * g.in_w * kLanes; }  // elements of a block of a sample
  std::int64_t out_image() const { return g.out_d() * g.out_h() * g.out_w() * kLanes; }
  WinogradTiles in_tiles(std::int64_t begin, std::int64_t count, std::int64_t plane) const;
  WinogradTiles out_tiles(std::int64_t begin, std::int64_t count, std::int64_t plane) const;

  // The rows of x and of `blocks` blocks of outputs of y that tiles read and write, for prefetches; none over three
  // axes.
  MemoryRegion in_rows(std::int64_t begin, std::int64_t count, const float* x) const;
  MemoryRegion out_rows(std::int64_t begin, std::int64_t count, std::int64_t blocks, const float* y) const;

  // The transforms of WinogradTable: of a source of x, and of one block of outputs of y and dy. T is float or Bf16;
  // only floats have a norm, whose lanes are those of all blocks of channels.
  template <class T>
  void transform_input(const WinogradTiles& tiles, const T* x, std::int64_t source, const NormaliseLanes* norm,
                       float* v) const;
  void transform_output(const WinogradTiles& tiles, const float* m, const WinogradTable::Output& o, float* y) const;
  template <class T>
  void transform_slopes(const WinogradTiles& tiles, const T* dy, float* z) const;
};

// y = [relu](x * w + bias + addend); or dx of the same geometry, with dy in place of x.
class WinogradConvolution {
 public:
  enum class Direction : std::uint8_t { Forward, BackwardData };
  // tile: 2 or 4. With `normalises`, runs have a norm. Throws Error for a geometry that supports_winograd refuses.
  WinogradConvolution(const ConvolutionGeometry& g, Direction direction, int tile,
                      const NativeKernels& kernels = native_kernels(), bool normalises = false);
  std::size_t workspace_bytes() const;

  struct Arrays {
    const float *x = nullptr, *w = nullptr;
    GivenNorm norm = {};            // of x
    const float* bias = nullptr;    // [out channels], or null
    const float* addend = nullptr;  // like y, and may be y; or null
    bool relu = false;
    float* y = nullptr;
    float* workspace = nullptr;  // aligned to 64 bytes
  };
  void run(const Arrays& a) const;

 private:
  struct Scratch;
  struct Chunk;
  Scratch scratch(float* workspace, std::int64_t worker) const;
  void transform_weights(const float* w, std::int64_t out, std::int64_t source, float* u, std::int64_t plane) const;
  void transform_output(const Arrays& a, const Chunk& c, const float* m) const;
  void multiply(const Chunk& c, const float* v, float* m) const;
  std::int64_t out_chunks() const { return (shape_.out_blocks + chunk_ - 1) / chunk_; }
  void run_stored(const Arrays& a, Range groups, const Scratch& own) const;
  void run_group(const Arrays& a, std::int64_t group, bool last, const Scratch& own) const;
  void run_streamed(const Arrays& a, Range items, const Scratch& own) const;
  void run_chunk(const Arrays& a, const Chunk& tiles, std::int64_t chunk, const Scratch& own) const;
  std::int64_t bias_elements() const { return shape_.out_blocks * kLanes; }
  std::int64_t lane_elements() const { return bias_elements() + (normalises_ ? norm_elements(shape_.in_blocks) : 0); }
  void transform_input(const Arrays& a, const WinogradTiles& tiles, std::int64_t source, float* v) const;

  const NativeKernels& kernels_;
  WinogradShape shape_;
  bool normalises_;
  bool turned_, stored_;                      // weights: for the gradient by x; transformed once per worker
  std::int64_t tiles_, chunk_;                // of a group; blocks of outputs of a chunk
  std::int64_t u_plane_, v_plane_, m_plane_;  // elements
  std::int64_t workers_;
  std::vector<BlockedTable::Term> terms_;
};

// dw and, unless null, dbias; both zero for an empty batch. x and dy are f32 or bf16, all sums f32.
class WinogradGradient {
 public:
  WinogradGradient(const ConvolutionGeometry& g, int tile, const NativeKernels& kernels = native_kernels(),
                   bool normalises = false);
  std::size_t workspace_bytes() const;

  template <class T>  // float or Bf16
  struct ArraysOf {
    const T *x = nullptr, *dy = nullptr;
    GivenNorm norm = {};  // of x in f32
    float *dw = nullptr, *dbias = nullptr;
    float* workspace = nullptr;  // aligned to 64 bytes
  };
  using Arrays = ArraysOf<float>;
  void run(const Arrays& a) const { run_all(a); }
  void run(const ArraysOf<Bf16>& a) const { run_all(a); }

 private:
  struct Scratch;
  Scratch scratch(float* workspace, std::int64_t worker) const;
  std::int64_t dw_elements() const;
  std::int64_t partial_elements() const;
  std::int64_t in_chunks() const { return (shape_.sources + in_chunk_ - 1) / in_chunk_; }
  std::int64_t out_chunks() const { return (shape_.out_blocks + out_chunk_ - 1) / out_chunk_; }
  template <class T>
  void run_all(const ArraysOf<T>& a) const;
  template <class T>
  void run_by_parts(const ArraysOf<T>& a) const;
  template <class T>
  void run_part(const ArraysOf<T>& a, std::int64_t part, std::int64_t chunk, const Scratch& own, bool add,
                float* dw) const;
  template <class T>
  void run_by_chunks(const ArraysOf<T>& a) const;
  template <class T>
  void run_chunks(const ArraysOf<T>& a, std::int64_t part, Range chunks, const Scratch& own) const;
  void run_chunk(std::int64_t part, std::int64_t chunk, const Scratch& own, float* dw) const;
  template <class T>
  void sum_bias(const ArraysOf<T>& a) const;
  std::int64_t lane_elements() const { return normalises_ ? norm_elements(shape_.in_blocks) : 0; }
  template <class T>
  void transform_input(const ArraysOf<T>& a, const WinogradTiles& tiles, std::int64_t source, float* v) const;

  const NativeKernels& kernels_;
  WinogradShape shape_;
  bool normalises_;
  std::int64_t parts_;                        // of the tiles, with sums of their own
  std::int64_t slots_;                        // sums of neighbouring parts that are kept side by side
  bool by_parts_;                             // parts run side by side; else one after the other, by chunks of weights
  std::int64_t tiles_;                        // of a group that is transformed at once
  std::int64_t out_chunk_, in_chunk_;         // blocks of weights whose sums stay in a cache
  std::int64_t v_plane_, z_plane_, u_plane_;  // elements
  std::int64_t workers_;
};

}  // namespace lockstep::kernels::native
