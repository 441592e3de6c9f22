// Descriptions of a plan as text, for people and for comparing ranks.
#pragma once

#include <string>

#include "lockstep/plan/assembly.h"

namespace lockstep::plan {

std::size_t bytes_of(const Assembly& assembly, const PlanStep& step);  // of inputs and outputs, padding included
double flops_of(const Assembly& assembly);
// A line per step with shapes, layouts, bytes, FLOPs; and the totals.
std::string describe(const Assembly& assembly, std::size_t arena_bytes, std::size_t constant_bytes);
// A line per operation of the model and its gradient, with attributes and shapes. The text is the same on every
// processor: it leaves out reorders and element types, which depend on the available kernels.
std::string operations(const Assembly& assembly);

}  // namespace lockstep::plan
