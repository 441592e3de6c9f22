// The addresses of a plan's buffers: intermediate values in the arena that all plans of a model share, constants in
// memory of the plan, parameters and gradients in the store. Assembly, store and arena outlive it. One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/plan/assembly.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::plan {

// The slot to which a run writes the gradients of parameters; with `accumulate` it adds to the content.
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

  // Makes the arena large enough; call it before address(). Throws Error where memory is short.
  void reserve() { arena_.reserve(arena_bytes_); }
  // Changes with all addresses in the arena.
  int generation() const { return arena_.generation(); }
  // The address of a buffer; for a gradient it depends on the target.
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
