#include "data/generate/darcy.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "data/generate/darcy_solver.h"
#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::datasets {
namespace {

constexpr std::int64_t kModes = 64;  // cosines per axis

void check_options(const DarcyOptions& o) {
  check(o.size >= 2 && o.size <= 4096, "darcy", "--size is {}, expected 2 to 4096", o.size);
  check(o.refine >= 1 && o.refine <= 15 && o.refine % 2 == 1, "darcy", "--refine is {}, expected 1, 3, ... 15",
        o.refine);
  check(o.low > 0 && o.high > 0 && std::isfinite(o.low) && std::isfinite(o.high), "darcy",
        "--low is {} and --high is {}, expected numbers above 0", o.low, o.high);
  check(o.spread >= 0 && o.spread <= 5, "darcy", "--spread is {}, expected 0 to 5", o.spread);
  check(o.alpha > 1 && o.alpha <= 10 && o.tau >= 0.01 && o.tau <= 100, "darcy",
        "--alpha is {} and --tau is {}, expected more than 1 and up to 10, and 0.01 to 100", o.alpha, o.tau);
  check(std::abs(o.source) <= 1e100, "darcy", "--source is {}, expected -1e100 to 1e100", o.source);
  check(o.tolerance >= 1e-14 && o.tolerance < 1, "darcy", "--tolerance is {}, expected 1e-14 to 1", o.tolerance);
}

}  // namespace

Darcy::Darcy(const DarcyOptions& options) : options_(options) {
  check_options(options_);
  const Shape shape({options_.size, options_.size});
  fields_ = {{"coefficient", shape, DType::F64}, {"solution", shape, DType::F64}};
  const std::int64_t cells = options_.size * options_.refine;
  constexpr double kPi = std::numbers::pi;
  for (std::int64_t k = 0; k < kModes; ++k) {
    for (std::int64_t i = 0; i < cells; ++i) {
      const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(cells);
      cosines_.push_back(k == 0 ? 1 : std::numbers::sqrt2 * math::cos(kPi * static_cast<double>(k) * x));
    }
  }
  for (std::int64_t k = 0; k < kModes; ++k) {
    for (std::int64_t l = 0; l < kModes; ++l) {
      const double laplace = kPi * kPi * static_cast<double>(k * k + l * l);
      // The mean has no part in it: without this, most samples have one value almost everywhere.
      const double eigenvalue = k + l == 0 ? 0 : math::pow(laplace + options_.tau * options_.tau, -options_.alpha);
      amplitudes_.push_back(std::sqrt(eigenvalue));
      deviation_ += eigenvalue;
    }
  }
  deviation_ = std::sqrt(deviation_);
}

std::string Darcy::parameters() const {
  const DarcyOptions& o = options_;
  nlohmann::json json{{"equation", "-div(coefficient grad solution) = source, solution 0 at the boundary"},
                      {"size", o.size},
                      {"refine", o.refine},
                      {"coefficient", o.log_normal ? "log-normal" : "piecewise"},
                      {"alpha", o.alpha},
                      {"tau", o.tau},
                      {"source", o.source},
                      {"tolerance", o.tolerance}};
  if (o.log_normal) {
    json["spread"] = o.spread;
  } else {
    json["low"] = o.low;
    json["high"] = o.high;
  }
  return json.dump();
}

std::vector<double> Darcy::field(RandomStream random) const {
  const auto cells = static_cast<std::size_t>(options_.size * options_.refine);
  constexpr auto kCount = static_cast<std::size_t>(kModes);
  std::vector<double> rows(kCount * cells), values(cells * cells);
  for (std::size_t k = 0; k < kCount; ++k) {
    for (std::size_t l = 0; l < kCount; ++l) {
      const double factor = amplitudes_[k * kCount + l] * random.normal();
      for (std::size_t i = 0; i < cells; ++i) rows[k * cells + i] += factor * cosines_[l * cells + i];
    }
  }
  for (std::size_t j = 0; j < cells; ++j) {
    for (std::size_t k = 0; k < kCount; ++k) {
      const double factor = cosines_[k * cells + j];
      for (std::size_t i = 0; i < cells; ++i) values[j * cells + i] += factor * rows[k * cells + i];
    }
  }
  return values;
}

void Darcy::sample(std::uint64_t seed, std::int64_t index, double* coefficient, double* solution) const {
  const DarcyOptions& o = options_;
  std::vector<double> permeability = field(random(seed, index));
  for (double& value : permeability) {
    if (o.log_normal) {
      value = math::exp(o.spread * value / deviation_);
    } else {
      value = value >= 0 ? o.high : o.low;
    }
  }
  const std::vector<double> source(permeability.size(), o.source);
  std::vector<double> pressure(permeability.size());
  try {
    solve_darcy(DarcyMatrix(o.size * o.refine, permeability), source, pressure, {.tolerance = o.tolerance});
  } catch (const Error& error) {
    fail("darcy", "sample {}: {}", index, error.what());
  }
  for (std::int64_t row = 0; row < o.size; ++row) {
    for (std::int64_t column = 0; column < o.size; ++column) {
      const std::int64_t j = row * o.refine + o.refine / 2, i = column * o.refine + o.refine / 2;
      const auto fine = static_cast<std::size_t>(j * o.size * o.refine + i);
      coefficient[row * o.size + column] = permeability[fine];
      solution[row * o.size + column] = pressure[fine];
    }
  }
}

void Darcy::generate(std::uint64_t seed, std::int64_t first, std::int64_t count, std::span<double* const> out) const {
  const std::int64_t cells = options_.size * options_.size;
  for_each_sample(count, [&](std::int64_t i) { sample(seed, first + i, out[0] + i * cells, out[1] + i * cells); });
}

}  // namespace lockstep::datasets
