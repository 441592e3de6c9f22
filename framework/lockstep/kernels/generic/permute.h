// Axes in another order. Elements are moved by their size: runs of neighbours by memcpy, transposed parts tile by tile,
// so that memory is read and written in whole cache lines. Results do not depend on threads. Nothing allocates in a
// run.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/shape.h"

namespace lockstep::kernels::generic {

class PermutedCopy {
 public:
  // Axis k of the output is axis axes[k] of the input, whose shape is `from`. Elements have 1, 2, 4 or 8 bytes.
  PermutedCopy(const Shape& from, const std::vector<int>& axes, std::size_t element_bytes);
  void operator()(const void* source, void* destination) const;

 private:
  struct Axis {
    std::int64_t size, in, out;  // elements between neighbours in the input and in the output
  };
  // Where an outer element begins in the input and in the output.
  struct Corner {
    std::int64_t in = 0, out = 0;
  };
  Corner corner(std::int64_t outer) const;
  template <class Element>
  void copy(const Element* source, Element* destination) const;
  template <class Element>
  void copy_tile(const Element* source, std::int64_t rows, Element* destination) const;

  // Axes that lie behind each other in both values are one axis. The last two: of the input's neighbours (`rows`), and
  // of the output's neighbours (`columns`); a copy of runs has no `rows`.
  std::vector<Axis> outer_;
  Axis rows_{1, 0, 0}, columns_{1, 1, 1};
  std::int64_t row_tile_ = 1, column_tile_ = 1;
  std::size_t element_bytes_;
};

}  // namespace lockstep::kernels::generic
