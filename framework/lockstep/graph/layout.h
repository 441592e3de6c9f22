// The order in which the elements of a value lie in memory. The default is plain: dense, row-major. A blocked layout
// pads each dimension to a multiple of its blocks and stores the blocks innermost: nChw16c has strides of (C/16, H, W)
// outside and one inner block (dim 1, 16). Padding is zero wherever a node of a plan reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"

namespace lockstep {

struct Layout {
  struct Block {
    int dim;
    std::int64_t size;
    bool operator==(const Block&) const = default;
  };
  std::vector<std::int64_t> padded;   // one per dimension, a multiple of its blocks; empty: plain
  std::vector<std::int64_t> strides;  // elements between neighbours in the outer (per-block) index of each dimension
  std::vector<Block> blocks;          // outermost first; the last one is contiguous

  bool plain() const { return padded.empty(); }
  // Elements in memory, padding included.
  std::int64_t storage_elements(const Shape& shape) const;
  bool has_padding(const Shape& shape) const { return storage_elements(shape) != shape.elements(); }
  // For kernels on [N][C/b][H*W][b]: the block size b if channels (dimension 1) are blocked and all else is dense and
  // row-major, 1 for a plain layout, 0 for any other.
  std::int64_t channel_block(const Shape& shape) const;
  std::string str() const;  // "plain", or dimensions by falling stride and the blocks: nChw16c is "aBcd16b"
  bool operator==(const Layout&) const = default;

  // The layout [N][C/block][spatial dimensions][block].
  static Layout channels_blocked(const Shape& shape, std::int64_t block);
};

// Copies the logical elements from one layout to another and sets the padding of the destination to zero. The types are
// equal, or f32 and bf16, which are converted. The constructor allocates; a call does not, and works on OpenMP threads.
// Immutable: any thread may call it.
class Reorder {
 public:
  Reorder(const Shape& shape, DType from_dtype, const Layout& from, DType to_dtype, const Layout& to);
  Reorder(const Shape& shape, DType dtype, const Layout& from, const Layout& to)
      : Reorder(shape, dtype, from, dtype, to) {}
  void operator()(const void* source, void* destination) const;

 private:
  using Offsets = std::vector<std::vector<std::int64_t>>;  // by dimension and index: its part of an element's offset
  static Offsets offsets(const Shape& shape, const Layout& layout);
  template <class From, class To>
  void copy(const void* source, void* destination) const;

  Shape shape_;
  DType from_, to_;
  std::size_t bytes_;  // of the destination
  bool same_, clears_;
  Offsets in_, out_;
};

// Copies once: see Reorder.
inline void reorder(const Shape& shape, DType dtype, const Layout& from, const void* source, const Layout& to,
                    void* destination) {
  Reorder(shape, dtype, from, to)(source, destination);
}

}  // namespace lockstep
