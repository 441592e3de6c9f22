// One number per spatial axis of a layer, the outermost first: PerAxis<3>(2) is 2 for each axis, PerAxis<3>(1, 3, 3)
// one for depth, height and width. In braces of a configuration: `.kernel = 3` and `.kernel = {1, 3, 3}`.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::nn {

template <int Axes>
class PerAxis {
 public:
  PerAxis(std::int64_t all) { values_.fill(all); }
  template <std::integral... Numbers>
  requires(Axes > 1 && sizeof...(Numbers) == static_cast<std::size_t>(Axes)) PerAxis(Numbers... numbers)
      : values_{static_cast<std::int64_t>(numbers)...} {}

  std::int64_t operator[](int axis) const { return values_[static_cast<std::size_t>(axis)]; }
  std::vector<std::int64_t> values() const { return {values_.begin(), values_.end()}; }
  bool operator==(const PerAxis&) const = default;

 private:
  std::array<std::int64_t, Axes> values_;
};

}  // namespace lockstep::nn
