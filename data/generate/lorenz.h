// Windows of trajectories of Lorenz's system (Lorenz, "Deterministic nonperiodic flow", 1963) on its attractor, where
// errors grow as e^(0.906 t): a model sees `past` values and predicts the `future` ones.
//   x' = 10 (y - x),   y' = x (28 - z) - y,   z' = x y - 8/3 z
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/generate/generator.h"

namespace lockstep::datasets {

// One step of length h of the classical method of Runge and Kutta, of fourth order, for x' = f(x).
template <std::size_t N, class Function>
std::array<double, N> runge_kutta(const Function& f, const std::array<double, N>& x, double h) {
  const auto moved = [&](const std::array<double, N>& slope, double by) {
    std::array<double, N> y = x;
    for (std::size_t i = 0; i < N; ++i) y[i] += by * slope[i];
    return y;
  };
  const auto a = f(x), b = f(moved(a, h / 2)), c = f(moved(b, h / 2)), d = f(moved(c, h));
  std::array<double, N> y = x;
  for (std::size_t i = 0; i < N; ++i) y[i] += h / 6 * (a[i] + 2 * (b[i] + c[i]) + d[i]);
  return y;
}

std::array<double, 3> lorenz_slope(const std::array<double, 3>& state);

struct LorenzOptions {
  std::int64_t past = 64, future = 16;  // values
  double interval = 0.05;               // between two values; steps of the integration are at most 0.005
};

// Fields: "past" (past, 3) and "future" (future, 3), the values of x, y, z one time after the other. Each sample is a
// trajectory of its own.
class Lorenz final : public Generator {
 public:
  explicit Lorenz(const LorenzOptions& options);  // throws Error for options out of range

  std::string_view name() const override { return "lorenz"; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string parameters() const override;
  void generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                std::span<double* const> out) const override;

 private:
  LorenzOptions options_;
  std::vector<data::Field> fields_;
  std::int64_t substeps_ = 1;  // of the integration in an interval
};

}  // namespace lockstep::datasets
