#include "lockstep/plan/plan_pointers.h"

namespace lockstep::plan {

void PlanPointers::bind(const Assembly& assembly, const PlanMemory& memory) {
  if (bound_generation_ == memory.generation()) return;
  pointers_.clear();
  gradient_pointers_.clear();
  arguments_.clear();
  std::size_t count = 0;
  for (const PlanStep& step : assembly.steps) count += step.inputs.size() + step.outputs.size();
  pointers_.reserve(count);  // arguments_ point into it
  const auto push = [&](int b) {
    const int root = assembly.root(b);
    if (assembly.buffers[static_cast<std::size_t>(root)].kind == PlanBuffer::Kind::Gradient) {
      gradient_pointers_.push_back({pointers_.size(), root});
    }
    pointers_.push_back(memory.address(b, aimed_));
  };
  for (std::size_t s = 0; s < assembly.steps.size(); ++s) {
    const PlanStep& step = assembly.steps[s];
    kernels::Arguments a{pointers_.data() + pointers_.size(), nullptr, nullptr};
    for (int b : step.inputs) push(b);
    a.outputs = pointers_.data() + pointers_.size();
    for (int b : step.outputs) push(b);
    a.workspace = memory.workspace(s);
    arguments_.push_back(a);
  }
  bound_generation_ = memory.generation();
}

void PlanPointers::aim(GradientTarget target, const PlanMemory& memory) {
  if (target.slot == aimed_.slot && target.accumulate == aimed_.accumulate) return;
  aimed_ = target;
  for (const GradientPointer& g : gradient_pointers_) pointers_[g.at] = memory.address(g.buffer, aimed_);
}

}  // namespace lockstep::plan
