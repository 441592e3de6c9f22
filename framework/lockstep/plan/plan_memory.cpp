#include "lockstep/plan/plan_memory.h"

namespace lockstep::plan {

PlanMemory::PlanMemory(Assembly& assembly, std::span<const std::unique_ptr<kernels::Kernel>> kernels,
                       ParameterStore& store, Arena& arena)
    : assembly_(assembly), store_(store), arena_(arena) {
  plan_lifetimes(assembly_);
  std::vector<Lifetime*> lifetimes;
  for (PlanBuffer& b : assembly_.buffers) {
    const bool has_memory = b.alias < 0 && b.life.last >= 0 && b.life.bytes > 0;
    if (has_memory && (b.kind == PlanBuffer::Kind::Arena || b.kind == PlanBuffer::Kind::Gradient))
      lifetimes.push_back(&b.life);
  }
  for (std::size_t s = 0; s < kernels.size(); ++s) {
    // Constants are computed before the first step, while the arena already holds inputs.
    const int when = assembly_.steps[s].constant ? 0 : static_cast<int>(s);
    workspaces_.push_back({.bytes = kernels[s]->workspace_bytes(), .first = when, .last = when});
  }
  for (Lifetime& w : workspaces_) {
    if (w.bytes > 0) lifetimes.push_back(&w);
  }
  place_constants();
  derive_copies();
  arena_bytes_ = assign_offsets(std::move(lifetimes));
  arena_.reserve(arena_bytes_);
}

void PlanMemory::place_constants() {
  for (PlanBuffer& b : assembly_.buffers) {
    if (b.kind != PlanBuffer::Kind::Constant || b.alias >= 0) continue;
    b.life.offset = constant_bytes_;
    constant_bytes_ += whole_lines(b.life.bytes);
  }
  constants_ = allocate_aligned(constant_bytes_);
}

void PlanMemory::derive_copies() {
  for (const PlanBuffer& b : assembly_.buffers) {
    if (b.kind == PlanBuffer::Kind::Derived) store_.derive(b.parameter, b.layout, b.type.dtype);
  }
  store_.make_copies();
}

void* PlanMemory::address(int buffer, GradientTarget target) const {
  const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(assembly_.root(buffer))];
  switch (b.kind) {
    case PlanBuffer::Kind::Parameter:
      return store_.value(b.parameter);
    case PlanBuffer::Kind::Derived:
      return store_.derived(store_.derive(b.parameter, b.layout, b.type.dtype));
    case PlanBuffer::Kind::Gradient:
      if (!target.accumulate && target.slot >= 0) return store_.gradient(b.parameter, target.slot);
      break;
    case PlanBuffer::Kind::Constant:
      return constants_.get() + b.life.offset;
    case PlanBuffer::Kind::Arena:
      break;
  }
  return b.life.bytes == 0 ? nullptr : arena_.data() + b.life.offset;
}

void* PlanMemory::workspace(std::size_t step) const {
  const Lifetime& w = workspaces_[step];
  return w.bytes > 0 ? arena_.data() + w.offset : nullptr;
}

}  // namespace lockstep::plan
