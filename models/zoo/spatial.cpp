#include "models/zoo/spatial.h"

#include <algorithm>

namespace lockstep::models {

std::int64_t halvings(const Shape& sizes, std::int64_t most) {
  std::int64_t n = 0;
  const auto divides = [&](std::int64_t by) {
    for (int i = 0; i < sizes.rank(); ++i) {
      if (sizes[i] % by != 0 || sizes[i] / by < 1) return false;
    }
    return true;
  };
  while (n < most && divides(std::int64_t{2} << n)) ++n;
  return n;
}

std::int64_t rough_halvings(const Shape& sizes, std::int64_t most) {
  std::int64_t smallest = *std::ranges::min_element(sizes.dims()), n = 0;
  for (; n < most && smallest >= 2; ++n) smallest /= 2;
  return n;
}

}  // namespace lockstep::models
