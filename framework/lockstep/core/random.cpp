#include "lockstep/core/random.h"

#include <cmath>
#include <numbers>

#include "lockstep/core/math.h"

namespace lockstep {

// Not in the header, where a user's compiler might fuse the product and the sum.
double RandomStream::uniform(double low, double high) { return low + (high - low) * uniform(); }

double RandomStream::normal() {
  const double u = (static_cast<double>(next()) + 1.0) * 0x1p-32;  // (0, 1]: the logarithm is finite
  const double v = static_cast<double>(next()) * 0x1p-32;
  return std::sqrt(-2.0 * math::log(u)) * math::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  const auto word = [this] {
    const std::uint64_t high = next();
    return high << 32 | next();
  };
  unsigned __int128 product = static_cast<unsigned __int128>(word()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<unsigned __int128>(word()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace lockstep
