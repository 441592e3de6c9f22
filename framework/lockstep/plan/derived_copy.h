// Writes a copy of a parameter in another layout, in f32, f64 or bf16, piece by piece: any range of the persistent
// storage can be carried over while it is still in cache, in any order and by any thread, if the ranges are disjoint. A
// parameter's padding is zero, so that of the copy stays zero. Immutable; allocates in the constructor alone.
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
  // Carries over elements `range` of the source's storage. `source` and `copy` are where the storages begin; the copy
  // was zero before the first call. Fastest where ranges begin and end at multiples of tile().
  void write(Range range, const void* source, void* copy) const;
  // Neighbouring elements of the source that all tiles carry over alike.
  std::int64_t tile() const { return tile_; }

 private:
  // How a tile's elements lie in the copy, seen as `rows_` times `columns_` of the source.
  enum class Pattern : std::uint8_t { Same, Transposed, Pairs, TransposedPairs, Any };
  // One index of a storage order: `digit` of it is `digit * step` of dimension `dim` and lies `digit * stride` on.
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
  std::vector<Axis> axes_;                         // of the source, innermost first, without those of size 1
  std::size_t inner_axes_ = 0;                     // of them, in a tile
  std::vector<std::int64_t> extents_;              // of a tile, by dimension
  std::vector<std::vector<std::int64_t>> places_;  // by dimension and index in the copy: its part of the offset
  std::vector<std::int64_t> inner_;                // offsets of a tile's elements in the copy; empty where Same
};

}  // namespace lockstep::plan
