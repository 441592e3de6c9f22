// Where a plan's buffers lie: offsets in the arena that all plans of a model share, constants of its own, parameters
// and gradients in the store. The assembly, the store and the arena outlive it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/plan/assembly.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::plan {

// Where a run leaves parameter gradients: overwriting slot `slot`, or added to what is there.
struct GradientTarget {
  int slot = 0;
  bool accumulate = false;
};

class PlanMemory {
 public:
  // Sets lifetimes and offsets of the assembly's buffers and of the kernels' workspaces, derives the copies of
  // parameters that the steps read, and reserves the arena.
  PlanMemory(Assembly& assembly, std::span<const std::unique_ptr<kernels::Kernel>> kernels, ParameterStore& store,
             Arena& arena);

  // Before addresses are asked for: the arena is large enough then, unless memory runs out (Error).
  void reserve() { arena_.reserve(arena_bytes_); }
  // Changes with all addresses in the arena.
  int generation() const { return arena_.generation(); }
  // Of a buffer; that of a gradient depends on the target.
  void* address(int buffer, GradientTarget target) const;
  void* workspace(std::size_t step) const;  // null where the kernel has none
  std::size_t arena_bytes() const { return arena_bytes_; }
  std::size_t constant_bytes() const { return constant_bytes_; }

 private:
  void place_constants();
  void derive_copies();

  Assembly& assembly_;
  ParameterStore& store_;
  Arena& arena_;
  std::vector<Lifetime> workspaces_;  // by step
  std::size_t arena_bytes_ = 0, constant_bytes_ = 0;
  AlignedBuffer constants_;
};

}  // namespace lockstep::plan
