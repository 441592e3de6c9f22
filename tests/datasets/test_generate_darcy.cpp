// The solver of Darcy flow against a dense solver and a manufactured solution, and its random fields
// against their covariance.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "data/generate/darcy.h"
#include "data/generate/darcy_solver.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr double kPi = std::numbers::pi;

using Values = std::vector<double>;

// f(x, y) at the centres of n x n cells; x is the column.
template <class Function>
Values at_centres(std::int64_t n, Function f) {
  Values values;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      values.push_back(f((static_cast<double>(column) + 0.5) / static_cast<double>(n),
                         (static_cast<double>(row) + 0.5) / static_cast<double>(n)));
    }
  }
  return values;
}

Values solve(std::int64_t n, const Values& coefficient, const Values& source) {
  Values solution(coefficient.size());
  solve_darcy(DarcyMatrix(n, coefficient), source, solution);
  return solution;
}

double root_mean_square(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The balance of fluxes of each cell, written as a dense matrix, and solved by elimination.
Values dense_solution(std::int64_t n, const Values& a, const Values& source) {
  const auto cells = static_cast<std::size_t>(n * n);
  std::vector<Values> rows(cells, Values(cells + 1));
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const auto i = static_cast<std::size_t>(row * n + column);
      rows[i][cells] = source[i] / static_cast<double>(n * n);
      for (const auto& [r, c] : {std::pair{row - 1, column}, {row + 1, column}, {row, column - 1}, {row, column + 1}}) {
        if (r < 0 || r >= n || c < 0 || c >= n) {
          rows[i][i] += 2 * a[i];
          continue;
        }
        const auto j = static_cast<std::size_t>(r * n + c);
        const double mean = 2 / (1 / a[i] + 1 / a[j]);
        rows[i][i] += mean;
        rows[i][j] -= mean;
      }
    }
  }
  for (std::size_t p = 0; p < cells; ++p) {
    for (std::size_t i = 0; i < cells; ++i) {
      if (i == p || rows[i][p] == 0) continue;
      const double factor = rows[i][p] / rows[p][p];
      for (std::size_t j = p; j <= cells; ++j) rows[i][j] -= factor * rows[p][j];
    }
  }
  Values solution;
  for (std::size_t i = 0; i < cells; ++i) solution.push_back(rows[i][cells] / rows[i][i]);
  return solution;
}

TEST(DarcySolver, AgreesWithElimination) {
  RandomStream random(1, 2);
  for (const std::int64_t n : {1, 2, 3, 7}) {
    Values coefficient, source;
    for (std::int64_t i = 0; i < n * n; ++i) {
      coefficient.push_back(std::exp(2 * random.normal()));
      source.push_back(random.normal());
    }
    const Values expected = dense_solution(n, coefficient, source), found = solve(n, coefficient, source);
    const Values zeros(expected.size());
    EXPECT_LT(root_mean_square(found, expected), 1e-8 * root_mean_square(expected, zeros)) << n;
  }
}

// u = sin(pi x) sin(2 pi y) with a = 2 + sin(3 x) cos(2 y).
TEST(DarcySolver, ErrorIsOfSecondOrder) {
  const auto u = [](double x, double y) { return std::sin(kPi * x) * std::sin(2 * kPi * y); };
  const auto a = [](double x, double y) { return 2 + std::sin(3 * x) * std::cos(2 * y); };
  const auto f = [&](double x, double y) {
    const double a_x = 3 * std::cos(3 * x) * std::cos(2 * y), a_y = -2 * std::sin(3 * x) * std::sin(2 * y);
    const double u_x = kPi * std::cos(kPi * x) * std::sin(2 * kPi * y);
    const double u_y = 2 * kPi * std::sin(kPi * x) * std::cos(2 * kPi * y);
    return 5 * kPi * kPi * a(x, y) * u(x, y) - a_x * u_x - a_y * u_y;
  };
  double previous = 0;
  for (const std::int64_t n : {16, 32, 64}) {
    const double error = root_mean_square(solve(n, at_centres(n, a), at_centres(n, f)), at_centres(n, u));
    if (previous > 0) {
      EXPECT_NEAR(std::log2(previous / error), 2, 0.1) << n;
    }
    previous = error;
  }
  EXPECT_LT(previous, 1e-3);
}

// Two layers with a jump on the faces between them: rows and columns are alike, and the solution is positive.
TEST(DarcySolver, DoesNotDependOnTheDirection) {
  constexpr std::int64_t kSize = 24;
  const auto layers = [](double x, double) { return x < 0.5 ? 1.0 : 100.0; };
  const Values ones(kSize * kSize, 1);
  const Values along = solve(kSize, at_centres(kSize, layers), ones);
  const Values across = solve(kSize, at_centres(kSize, [&](double x, double y) { return layers(y, x); }), ones);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      EXPECT_NEAR(along[i * kSize + j], across[j * kSize + i], 1e-9);
      EXPECT_GT(along[i * kSize + j], 0);  // the maximum principle
    }
  }
}

TEST(DarcySolver, RefusesWhatHasNoSolution) {
  EXPECT_THROW(DarcyMatrix(2, Values{1, 1, 0, 1}), Error);
  EXPECT_THROW(DarcyMatrix(2, Values{1, 1, 1}), Error);
  const DarcyMatrix matrix(4, Values(16, 1));
  Values solution(16);
  EXPECT_THROW(solve_darcy(matrix, Values(15), solution), Error);
  EXPECT_THROW(solve_darcy(matrix, Values(16, 1), solution, {.tolerance = 1e-12, .max_iterations = 1}), Error);
}

TEST(Darcy, FieldHasItsVariance) {
  const Darcy darcy({.size = 8});
  double sum = 0;
  constexpr int kSamples = 4000;
  for (int i = 0; i < kSamples; ++i) {
    for (const double value : darcy.field(darcy.random(3, i))) sum += value * value;
  }
  // The first modes have most of the variance, so its relative error is about sqrt(2 / kSamples) = 2%.
  EXPECT_NEAR(sum / (64.0 * kSamples) / (darcy.deviation() * darcy.deviation()), 1, 0.1);
}

TEST(Darcy, SamplesSatisfyTheEquation) {
  const Darcy darcy({.size = 12, .source = 2});
  Values coefficient(3 * 144), solution(3 * 144);
  double* const out[] = {coefficient.data(), solution.data()};
  darcy.generate(5, 0, 3, out);
  for (std::ptrdiff_t sample = 0; sample < 3; ++sample) {
    const Values a(coefficient.begin() + sample * 144, coefficient.begin() + (sample + 1) * 144);
    const Values u(solution.begin() + sample * 144, solution.begin() + (sample + 1) * 144);
    for (const double value : a) EXPECT_TRUE(value == 3 || value == 12);
    EXPECT_LT(root_mean_square(u, dense_solution(12, a, Values(144, 2))), 1e-9);
  }
}

// The coefficient of the middle cells is that of the coarse grid; the solution is nearer to the limit.
TEST(Darcy, RefinedSamplesAreOfTheSameProblem) {
  constexpr std::size_t kCells = 16 * 16;
  const auto sample = [&](std::int64_t refine) {
    std::vector<Values> fields(2, Values(kCells));
    double* const out[] = {fields[0].data(), fields[1].data()};
    Darcy({.size = 16, .refine = refine, .log_normal = true}).generate(1, 4, 1, out);
    return fields;
  };
  const auto coarse = sample(1), fine = sample(3), finest = sample(9);
  const double size = root_mean_square(finest[1], Values(kCells));
  EXPECT_LT(root_mean_square(coarse[0], finest[0]), 1e-12);
  const double error = root_mean_square(coarse[1], finest[1]), less = root_mean_square(fine[1], finest[1]);
  EXPECT_LT(error, 0.1 * size);
  EXPECT_LT(less, error / 4);
}

TEST(Darcy, RefusesOptions) {
  for (const DarcyOptions& options :
       {DarcyOptions{.size = 1}, DarcyOptions{.refine = 2}, DarcyOptions{.low = 0}, DarcyOptions{.alpha = 1},
        DarcyOptions{.tau = 0}, DarcyOptions{.tolerance = 0}, DarcyOptions{.source = NAN}})
    EXPECT_THROW(Darcy{options}, Error);
}

}  // namespace
}  // namespace lockstep::datasets
