// Numbers of dimensions, as an op over axes takes them: sum(x, 1), mean(x, {0, -1}). A negative number counts from the
// last dimension, -1. Without numbers an op works over all dimensions.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "lockstep/graph/value.h"

namespace lockstep {

class Axes {
 public:
  Axes() = default;
  Axes(int axis) : numbers_{axis} {}                                // NOLINT: one axis is a list of one
  Axes(std::initializer_list<int> numbers) : numbers_(numbers) {}   // NOLINT: so are numbers in braces
  Axes(std::vector<int> numbers) : numbers_(std::move(numbers)) {}  // NOLINT

  // Returns the dimensions of x that are meant, from 0 on and ascending. Throws Error that names `op` for a number that
  // x does not have, or for a dimension that is named twice.
  std::vector<int> of(std::string_view op, const Value& x) const;

 private:
  std::vector<int> numbers_;
};

// The shape with size 1 in these dimensions, or without these dimensions. `axes` ascend.
Shape kept_shape(const Shape& shape, const std::vector<int>& axes);
Shape reduced_shape(const Shape& shape, const std::vector<int>& axes);

}  // namespace lockstep
