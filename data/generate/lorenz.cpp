#include "data/generate/lorenz.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"

namespace lockstep::datasets {

std::array<double, 3> lorenz_slope(const std::array<double, 3>& state) {
  const auto [x, y, z] = state;
  return {10 * (y - x), x * (28 - z) - y, x * y - 8.0 / 3 * z};
}

Lorenz::Lorenz(const LorenzOptions& options) : options_(options) {
  const LorenzOptions& o = options_;
  check(o.past >= 1 && o.past <= 100000 && o.future >= 1 && o.future <= 100000, "lorenz",
        "--past is {} and --future {}, expected 1 to 100000", o.past, o.future);
  check(o.interval >= 1e-4 && o.interval <= 10, "lorenz", "--interval is {}, expected 0.0001 to 10", o.interval);
  fields_ = {{"past", Shape({o.past, 3}), DType::F64}, {"future", Shape({o.future, 3}), DType::F64}};
  substeps_ = static_cast<std::int64_t>(std::ceil(o.interval / 0.005));
}

std::string Lorenz::parameters() const {
  return nlohmann::json{{"equation", "x' = 10 (y - x), y' = x (28 - z) - y, z' = x y - 8/3 z"},
                        {"past", options_.past},
                        {"future", options_.future},
                        {"interval", options_.interval},
                        {"substeps", substeps_}}
      .dump();
}

void Lorenz::generate(std::uint64_t seed, std::int64_t first, std::int64_t count, std::span<double* const> out) const {
  const LorenzOptions& o = options_;
  const double step = o.interval / static_cast<double>(substeps_);
  for_each_sample(count, [&](std::int64_t s) {
    RandomStream random = this->random(seed, first + s);
    std::array<double, 3> state{};
    for (double& value : state) value = random.uniform(-10, 10);
    state[2] += 25;
    // The attractor is reached within a few units of time; a random time more makes samples independent.
    const auto before = static_cast<std::int64_t>(random.uniform(2000, 4000));
    for (std::int64_t i = 0; i < before; ++i) state = runge_kutta(lorenz_slope, state, 0.01);
    for (std::int64_t t = 0; t < o.past + o.future; ++t) {
      double* const to = t < o.past ? out[0] + (s * o.past + t) * 3 : out[1] + (s * o.future + t - o.past) * 3;
      std::ranges::copy(state, to);
      for (std::int64_t i = 0; i < substeps_; ++i) state = runge_kutta(lorenz_slope, state, step);
    }
  });
}

}  // namespace lockstep::datasets
