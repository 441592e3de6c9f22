// The arrays on which references compute: logical elements in double, row-major.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/core/shape.h"

namespace lockstep::optest {

struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(Shape s) : shape(std::move(s)), values(static_cast<std::size_t>(shape.elements())) {}

  double& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  double& at(std::int64_t a, std::int64_t b) { return (*this)[a * shape[1] + b]; }
  double at(std::int64_t a, std::int64_t b) const { return (*this)[a * shape[1] + b]; }
  double& at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) { return (*this)[offset(a, b, c, d)]; }
  double at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return (*this)[offset(a, b, c, d)];
  }

 private:
  std::int64_t offset(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return ((a * shape[1] + b) * shape[2] + c) * shape[3] + d;
  }
};

}  // namespace lockstep::optest
