// Writes a copy of a parameter in another layout, in f32, f64 or bf16, range by range, so that an update can copy a
// range while it is still in cache. Threads may write disjoint ranges in any order. As the padding of a parameter is
// zero, the padding of the copy stays zero. Immutable; only the constructor allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/graph/layout.h"

namespace lockstep::plan {

class DerivedCopy {
 public:
  struct Form {
    DType dtype;
    const Layout& layout;
  };
  // The types are equal, or f32 becomes bf16; throws Error otherwise.
  DerivedCopy(const Shape& shape, const Form& from, const Form& to);

  // Elements of the source's storage.
  std::int64_t elements() const { return elements_; }
  // Writes elements `range` of the source's storage to the copy. `source` and `copy` are the begins of the storages;
  // the copy must be zero before the first call. Ranges that begin and end at multiples of tile() are fastest.
  void write(Range range, const void* source, void* copy) const;
  // Elements of a tile: neighbouring elements of the source, which are copied by the same pattern in every tile.
  std::int64_t tile() const { return tile_; }

 private:
  // The order of a tile's elements in the copy; the tile is a matrix of `rows_` times `columns_` in the source.
  enum class Pattern : std::uint8_t { Same, Transposed, Pairs, TransposedPairs, Any };
  // One index of a storage order: index i stands for i * step in dimension `dim` and for an offset of i * stride.
  struct Axis {
    int dim;
    std::int64_t size, step, stride;
  };
  struct Cursor;

  static std::vector<Axis> axes(const Shape& shape, const Layout& layout);
  void choose_tile();
  void split(std::size_t axis, std::int64_t limit);
  bool lies_alike(const Axis& axis) const;
  bool additive(int dim, std::int64_t extent) const;
  std::vector<std::int64_t> inner_offsets(std::int64_t tile) const;
  Pattern pattern_of(const std::vector<std::int64_t>& inner) const;
  template <class From, class To>
  void write_as(Range range, const From* source, To* copy) const;
  template <class From, class To>
  void write_tile(const From* source, To* copy) const;

  DType from_, to_;
  std::int64_t elements_ = 0, tile_ = 1, rows_ = 1, columns_ = 1;
  Pattern pattern_ = Pattern::Same;
  std::vector<Axis> axes_;                          // of the source, innermost first, without those of size 1
  std::size_t inner_axes_ = 0;                      // of them, in a tile
  std::vector<std::int64_t> extents_;               // of a tile, by dimension
  std::vector<std::vector<std::int64_t>> offsets_;  // by dimension and index in the copy: its part of the offset
  std::vector<std::int64_t> inner_;                 // offsets of a tile's elements in the copy; empty where Same
};

}  // namespace lockstep::plan
