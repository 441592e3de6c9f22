// Axes of values as PyTorch counts them: from 0 to rank - 1, or from -rank to -1, of which -1 is the last one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph/value.h"

namespace lockstep::axes {

// The module path under which ops of this value's graph are traced now, for errors.
std::string path(Value x);

// Returns the axis from 0 to rank - 1. Throws Error that names op, module path and shape where there is no such axis.
int of(std::string_view op, Value x, int axis);
// The same for several axes; throws Error where one is named twice.
std::vector<int> of(std::string_view op, Value x, const std::vector<int>& some);
// The axis along which a value gets one more dimension: from 0 to rank, or from -rank - 1 to -1.
int of_new(std::string_view op, Value x, int axis);

// The number of elements of the dimensions in front of `axis`, and behind it.
std::int64_t outer(const Shape& shape, int axis);
std::int64_t inner(const Shape& shape, int axis);
// `shape` with the dimension `axis` replaced by `by`, which may have none or several.
Shape replaced(const Shape& shape, int axis, const std::vector<std::int64_t>& by);
// Numbers as text: "0, 2, 1".
std::string text(const std::vector<std::int64_t>& numbers);

}  // namespace lockstep::axes
