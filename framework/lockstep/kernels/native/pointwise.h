// Computes a pointwise expression over arrays of f32, f64 or bf16 (bf16 in f32 arithmetic), block by block: the
// intermediate results of a block stay in the first-level cache. Every element depends on its own inputs alone, so
// results depend neither on threads nor on the level of instructions. Immutable; running it allocates nothing and
// throws nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"
#include "lockstep/kernels/common/pointwise_program.h"
#include "lockstep/kernels/kernel.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

// Maps the elements of the output to those of an input: one by one, always the same one, or by a repeating pattern.
class BroadcastMap {
 public:
  // `from` broadcasts to `to`. Both are in plain layout; or they are equal, with `elements` in memory, padding
  // included.
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
  // Throws Error for an expression that needs more than PointwiseProgram::kMost registers. The shapes of the inputs
  // broadcast to `output`, which has `elements` elements in memory.
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
