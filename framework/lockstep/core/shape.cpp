#include "lockstep/core/shape.h"

#include "lockstep/core/error.h"

namespace lockstep {

void Shape::fail_dimension(int i) const {
  check(rank() > 0, "shape", "dimension {} of a scalar was asked for: it has no dimensions", i);
  fail("shape", "dimension {} of {} was asked for, expected 0 to {}", i, str(), rank() - 1);
}

void Shape::fail_elements() const {
  fail("shape", "{} has more elements than can be counted, expected fewer than 2^63", str());
}

}  // namespace lockstep
