#include <algorithm>

#include "lockstep/plan/assembly.h"

namespace lockstep::plan {

void plan_lifetimes(Assembly& assembly) {
  auto& buffers = assembly.buffers;
  const int end = static_cast<int>(assembly.steps.size());
  const auto root_of = [&](int b) -> PlanBuffer& { return buffers[static_cast<std::size_t>(assembly.root(b))]; };
  for (PlanBuffer& b : buffers) {
    b.life = {.bytes = static_cast<std::size_t>(b.layout.storage_elements(b.type.shape)) * size_of(b.type.dtype),
              .first = end,
              .last = -1};
  }
  const auto touch = [&](int b, int step) {
    Lifetime& life = root_of(b).life;
    life.first = std::min(life.first, step);
    life.last = std::max(life.last, step);
  };
  for (const auto& [name, b] : assembly.inputs) touch(b, 0);
  for (int s = 0; s < end; ++s) {
    for (int b : assembly.steps[static_cast<std::size_t>(s)].inputs) touch(b, s);
    for (int b : assembly.steps[static_cast<std::size_t>(s)].outputs) touch(b, s);
  }
  for (int b : assembly.outputs) touch(b, end);

  for (int s = 0; s < end; ++s) {
    PlanStep& step = assembly.steps[static_cast<std::size_t>(s)];
    if (step.offer.in_place_input < 0) continue;
    const int in = step.inputs[static_cast<std::size_t>(step.offer.in_place_input)];
    const int out = step.outputs[static_cast<std::size_t>(step.offer.in_place_output)];
    PlanBuffer &source = root_of(in), &target = buffers[static_cast<std::size_t>(out)];
    if (source.kind != PlanBuffer::Kind::Arena || target.kind != PlanBuffer::Kind::Arena || source.keep || target.keep)
      continue;
    if (source.life.last != s || source.life.bytes != target.life.bytes) continue;
    // If a convolution adds its own input as the residual, a result in place would overwrite its input.
    const int root = assembly.root(in);
    if (std::ranges::count_if(step.inputs, [&](int b) { return assembly.root(b) == root; }) > 1) continue;
    target.alias = assembly.root(in);
    source.life.last = target.life.last;
  }
}

}  // namespace lockstep::plan
