// Reductions of a plain array over any of its axes. Each output is reduced in a fixed number of parts, and parts are
// joined pairwise: the order follows from the shape alone, never from threads. Where the innermost axes are reduced, a
// run of neighbours is summed on eight lanes in double; else whole rows are added, column by column in double. Runs on
// OpenMP threads where that pays; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/core/shape.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::kernels::generic {

// How the axes of an array fall into groups of neighbours that are all kept or all reduced.
struct ReduceGeometry {
  // `axes` ascend. Throws Error for more than 8 changes between kept and reduced axes.
  ReduceGeometry(const Shape& shape, const std::vector<int>& axes);

  struct Group {
    std::int64_t size, stride;  // in elements of x
  };
  std::vector<Group> kept, reduced;  // outermost first, all but the innermost group
  std::int64_t length = 1;           // the innermost group, whose elements lie side by side
  bool along = true;                 // the innermost group is reduced
  std::int64_t rows = 1;             // combinations of `kept`
  std::int64_t terms = 1;            // combinations of `reduced`
  std::int64_t parts = 1;            // of each output's elements

  std::int64_t units() const;  // what is reduced at a time: a row to one output, or a block of columns
  std::int64_t reduced_elements() const { return along ? terms * length : terms; }
};

// Bytes of scratch space, aligned to 16, that reduce_axes() needs.
std::size_t reduce_axes_workspace(const ReduceGeometry& geometry);

// y = x reduced as the op says. A mean of no elements is 0.
template <class T>
void reduce_axes(ReduceOp::Kind kind, const ReduceGeometry& geometry, const T* x, T* y, void* workspace);

}  // namespace lockstep::kernels::generic
