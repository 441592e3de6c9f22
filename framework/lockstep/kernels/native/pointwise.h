// A pointwise expression over arrays of f32, f64 or bf16 (which is worked out in f32), block by block: what lies
// between its functions stays in the first-level cache. Every element depends on its own inputs alone, so results
// depend neither on threads nor on the level of instructions. Immutable; running it allocates nothing and throws
// nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"
#include "lockstep/kernels/common/pointwise_program.h"
#include "lockstep/kernels/kernel.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// How an input is read along the elements of the output: one by one, the same one, or by a pattern of repetition.
class BroadcastMap {
 public:
  // `from` broadcasts to `to`. Both lie plain, or they are equal and there are `elements` in memory, padding included.
  BroadcastMap(const Shape& from, const Shape& to, std::int64_t elements);
  bool whole() const { return runs_.empty(); }
  bool single() const { return single_; }
  // Calls copy(at, count, stride, from): the elements `at` to at + count of a range that begins at output element
  // `begin` are read from element `from` on, `stride` (0 or 1) apart.
  template <class Copy>
  void for_runs(std::int64_t begin, std::int64_t count, const Copy& copy) const;

 private:
  struct Run {  // a dimension of the output, innermost first; neighbours of one kind are joined
    std::int64_t size, stride;
  };
  std::vector<Run> runs_;
  bool single_ = false;
};

class PointwiseKernel final : public Kernel {
 public:
  // Throws Error for an expression that needs more registers than there are. Shapes of the inputs broadcast to
  // `output`; `elements` is how many of the output there are in memory.
  PointwiseKernel(const pointwise::Expression& expression, std::span<const Shape> inputs, const Shape& output,
                  std::int64_t elements, DType dtype, const NativeKernels& kernels = native_kernels());
  void run(const Arguments& arguments) override;

 private:
  template <class T, class Stored>
  void run_as(const Arguments& arguments, const PointwiseTable<T>& table) const;
  template <class T, class Stored>
  class Blocks;

  PointwiseProgram program_;
  std::vector<BroadcastMap> inputs_;
  std::int64_t elements_;
  DType dtype_;
  const NativeKernels& kernels_;
};

}  // namespace lockstep::kernels::native
