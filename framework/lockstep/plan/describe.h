// A plan in words and numbers, for people and for comparing ranks.
#pragma once

#include <string>

#include "lockstep/plan/assembly.h"

namespace lockstep::plan {

std::size_t bytes_of(const Assembly& assembly, const PlanStep& step);  // of inputs and outputs, padding included
double flops_of(const Assembly& assembly);
// A line per step with shapes, layouts, bytes, FLOPs; and the totals.
std::string describe(const Assembly& assembly, std::size_t arena_bytes, std::size_t constant_bytes);
// A line per operation of the model and its gradient, with its attributes and shapes. The same on every processor for
// one model: reorders and element types, which follow from the kernels that there are, are left out.
std::string operations(const Assembly& assembly);

}  // namespace lockstep::plan
