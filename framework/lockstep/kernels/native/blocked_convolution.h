// Direct convolution in f32 on activations in blocks of 16 channels (nChw16c, or the same over one or three spatial
// axes), in all three directions: any filter, stride, padding and dilation; groups of whole blocks; one filter per
// channel, with channels as lanes; few input channels, read from a plain array. Forms, as graph/layout.h prints them:
//   weights        ABcd16b16a: blocks of 16 inputs by 16 outputs; for gradients of x ABcd16a16b, its transpose
//   few channels,
//   one per channel  Abcd16a: blocks of 16 outputs
// Padding of blocked arrays is zero on the way in and out. Each sum runs over the input's blocks, for each over the
// taps of the filter, for each over the block's channels, by fused multiply-adds; weight gradients over samples and
// positions, in parts of the batch and the depth that the shape fixes: neither threads nor instruction sets nor cache
// sizes change a bit. Immutable after construction, which throws Error for a geometry that is not supported; running
// works on OpenMP threads and neither allocates nor throws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/native/blocked_axes.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// How the channels of a convolution lie in blocks. Groups are those of blocks: a block each where every channel has its
// own filter.
struct BlockedChannels {
  explicit BlockedChannels(const ConvolutionGeometry& g);

  bool depthwise;                              // a filter per channel
  bool plain;                                  // x is a plain array; in_blocks is 1
  std::int64_t groups, in_blocks, out_blocks;  // blocks: of one group
  std::int64_t taps;
  // Elements of the weights of one block of inputs (plain: all of them) and one of outputs.
  std::int64_t filter_elements;

  std::int64_t weight_elements() const { return groups * in_blocks * out_blocks * filter_elements; }
};

enum class BlockedDirection : std::uint8_t { Forward, BackwardData, BackwardWeights };
bool supports_blocked(const ConvolutionGeometry& g);
// Whether these kernels should be the fastest, by the measurements in blocked_rule.cpp.
bool blocked_wins(const ConvolutionGeometry& g, BlockedDirection direction);

// y = [relu](x * w [+ bias] [+ residual]); or the gradient dx of the same geometry, with dy in place of x.
class BlockedConvolution {
 public:
  BlockedConvolution(const ConvolutionGeometry& g, BlockedDirection direction,
                     const NativeKernels& kernels = native_kernels());
  std::size_t workspace_bytes() const;  // aligned to 64

  struct Arrays {
    const float *x = nullptr, *w = nullptr;
    const float *bias = nullptr, *residual = nullptr;  // or null; forward only; residual: laid out as y
    bool relu = false;
    float* y = nullptr;
    float* workspace = nullptr;
  };
  void run(const Arrays& a) const;

 private:
  // Positions of the result that meet the same taps.
  struct Box {
    struct Axis {
      std::int64_t first, step, count, source_step;
    };
    std::array<Axis, 3> axes;
    std::vector<BlockedTable::Term> terms;  // of chunk_blocks_ blocks of the source
    std::vector<std::int64_t> parts;        // the first term of each part, and the end
    std::int64_t inputs = kLanes;           // of a term
  };
  // The part that one thread works out at a time: samples, planes, rows and columns of the result, for some of its
  // blocks.
  struct Unit {
    std::array<std::int64_t, 4> begin, end;
    std::int64_t group, block, blocks;
  };
  // A part of the sum: blocks of the source, or a part of the taps for one block.
  struct Chunk {
    std::int64_t block, blocks, part;
    bool first, last;
  };
  struct Call;

  bool backward() const { return direction_ == BlockedDirection::BackwardData; }
  void add_boxes();
  void add_terms(Box& box, const std::array<const AxisClass*, 3>& classes) const;
  void cut_units();
  std::int64_t units() const;
  Unit unit(std::int64_t index) const;
  void run_unit(const Arrays& a, const Unit& unit) const;
  void run_box(const Box& box, const Unit& unit, const Call& call) const;

  const NativeKernels& kernels_;
  ConvolutionGeometry g_;
  BlockedDirection direction_;
  BlockedChannels channels_;
  std::array<std::int64_t, 3> from_, to_;  // sizes of the axes of source and result
  std::vector<Box> boxes_;
  std::int64_t chunk_blocks_ = 1, tap_parts_ = 1;
  std::array<std::int64_t, 4> cut_ = {};  // positions of a unit
  std::int64_t unit_blocks_ = 1;
};

// dw and, unless null, dbias; both zero for an empty batch. x and dy as above.
class BlockedWeightGradient {
 public:
  explicit BlockedWeightGradient(const ConvolutionGeometry& g, const NativeKernels& kernels = native_kernels());
  std::size_t workspace_bytes() const;  // aligned to 64

  struct Arrays {
    const float *x = nullptr, *dy = nullptr;
    float *dw = nullptr, *dbias = nullptr;
    float* workspace = nullptr;
  };
  void run(const Arrays& a) const;

 private:
  // Products of some taps and the positions that they serve.
  struct Piece {
    std::array<TapRange, 3> axes;
    std::int64_t x, dw;            // offsets of the channel and of the first tap, in elements
    std::int64_t inputs = kLanes;  // taps side by side, or a block's channels
  };
  // The part that one thread works out at a time: a part of the sums for some blocks of the weights.
  struct Unit {
    std::int64_t part, group, out_block, out_blocks, in_block, in_blocks;
  };
  // Samples, planes, rows and columns of the output that are summed in one pass.
  struct Pass {
    std::array<std::int64_t, 4> begin, end;
  };

  void add_pieces();
  void add_plain_pieces();
  void cut();
  std::int64_t units() const;
  Unit unit(std::int64_t index) const;
  void run_unit(const Arrays& a, const Unit& unit, float* dw) const;
  void run_piece(const Arrays& a, const Unit& unit, const Pass& pass, const Piece& piece, float* dw) const;
  void add_parts(const Arrays& a) const;
  void bias_gradient(const Arrays& a) const;

  const NativeKernels& kernels_;
  ConvolutionGeometry g_;
  BlockedChannels channels_;
  std::array<std::int64_t, 3> out_;  // sizes of the output
  std::vector<Piece> pieces_;
  std::int64_t parts_ = 1;        // of the sums: of the batch, and these of the depth
  std::int64_t depth_parts_ = 1;  // of each part of the batch
  std::int64_t unit_outs_ = 1, unit_ins_ = 1;
  std::array<std::int64_t, 4> pass_ = {};  // sizes of a pass
};

}  // namespace lockstep::kernels::native
