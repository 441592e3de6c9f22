// How a value of a given shape lies in memory. The default is plain: dense, row-major. A blocked layout pads each
// dimension to its blocks and nests the blocks innermost: nChw16c is strides of (C/16, H, W) outside and one inner
// block (dim 1, 16). Padding is zero wherever a node of a plan can see it.
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
  // The inner block if the only blocking is of channels (dimension 1) of an otherwise dense row-major value, 1 if
  // plain, 0 for any other layout: what kernels written for [N][C/b][H*W][b] accept.
  std::int64_t channel_block(const Shape& shape) const;
  std::string str() const;  // "plain", or dimensions by falling stride and the blocks: nChw16c is "aBcd16b"
  bool operator==(const Layout&) const = default;

  // N, C/block, spatial dimensions, block.
  static Layout channels_blocked(const Shape& shape, std::int64_t block);
};

// Copies the logical elements from one layout to another; padding of the destination becomes zero. Any layouts; the
// types are equal or f32 and bf16, which convert. What depends on them is worked out in the constructor, so that
// running it allocates nothing. Immutable.
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

inline void reorder(const Shape& shape, DType dtype, const Layout& from, const void* source, const Layout& to,
                    void* destination) {
  Reorder(shape, dtype, from, to)(source, destination);
}

}  // namespace lockstep
