#include "data/generate/darcy_solver.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSolver = "darcy";

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// y + factor * x
void add(std::span<double> y, double factor, std::span<const double> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

}  // namespace

DarcyMatrix::DarcyMatrix(std::int64_t n, std::span<const double> coefficient) : n_(static_cast<std::size_t>(n)) {
  check(n >= 1 && coefficient.size() == n_ * n_, kSolver, "{} coefficients for {} x {} cells, expected one for each",
        coefficient.size(), n, n);
  for (std::size_t i = 0; i < coefficient.size(); ++i) {
    check(std::isfinite(coefficient[i]) && coefficient[i] > 0, kSolver,
          "the coefficient of cell {} is {}, expected a finite number above 0", i, coefficient[i]);
  }
  const auto face = [&](std::size_t i, std::size_t j) {
    return 2 * coefficient[i] * coefficient[j] / (coefficient[i] + coefficient[j]);
  };
  diagonal_.assign(n_ * n_, 0);
  right_ = below_ = inverse_ = diagonal_;
  for (std::size_t row = 0; row < n_; ++row) {
    for (std::size_t column = 0; column < n_; ++column) {
      const std::size_t i = row * n_ + column;
      if (column + 1 < n_) right_[i] = face(i, i + 1);
      if (row + 1 < n_) below_[i] = face(i, i + n_);
      const double boundary = 2 * coefficient[i];
      diagonal_[i] = (column > 0 ? right_[i - 1] : boundary) + (column + 1 < n_ ? right_[i] : boundary) +
                     (row > 0 ? below_[i - n_] : boundary) + (row + 1 < n_ ? below_[i] : boundary);
    }
  }
  factorise();
}

void DarcyMatrix::factorise() {
  // The share of the dropped fill that is taken off the diagonal. With all of it pivots may come near 0.
  constexpr double kModified = 0.97;
  for (std::size_t i = 0; i < inverse_.size(); ++i) {
    double pivot = diagonal_[i];
    if (i >= 1) pivot -= right_[i - 1] * (right_[i - 1] + kModified * below_[i - 1]) * inverse_[i - 1];
    if (i >= n_) pivot -= below_[i - n_] * (below_[i - n_] + kModified * right_[i - n_]) * inverse_[i - n_];
    inverse_[i] = 1 / pivot;
  }
}

void DarcyMatrix::multiply(std::span<const double> x, std::span<double> y) const {
  for (std::size_t i = 0; i < x.size(); ++i) {
    double sum = diagonal_[i] * x[i];
    if (i >= 1) sum -= right_[i - 1] * x[i - 1];  // 0 from one row to the next
    if (i + 1 < x.size()) sum -= right_[i] * x[i + 1];
    if (i >= n_) sum -= below_[i - n_] * x[i - n_];
    if (i + n_ < x.size()) sum -= below_[i] * x[i + n_];
    y[i] = sum;
  }
}

void DarcyMatrix::precondition(std::span<const double> r, std::span<double> z) const {
  for (std::size_t i = 0; i < r.size(); ++i) {
    double sum = r[i];
    if (i >= 1) sum += right_[i - 1] * z[i - 1];
    if (i >= n_) sum += below_[i - n_] * z[i - n_];
    z[i] = sum * inverse_[i];
  }
  for (std::size_t i = r.size(); i-- > 0;) {
    double sum = 0;
    if (i + 1 < r.size()) sum += right_[i] * z[i + 1];
    if (i + n_ < r.size()) sum += below_[i] * z[i + n_];
    z[i] += sum * inverse_[i];
  }
}

int solve_darcy(const DarcyMatrix& matrix, std::span<const double> source, std::span<double> solution,
                const DarcySolve& options) {
  const auto cells = static_cast<std::size_t>(matrix.cells());
  check(source.size() == cells && solution.size() == cells, kSolver,
        "{} sources and {} solutions for {} cells, expected one for each", source.size(), solution.size(), cells);
  std::vector<double> residual(source.begin(), source.end()), preconditioned(cells), direction(cells), image(cells);
  for (double& value : residual) value /= static_cast<double>(cells);  // the integral of f over a cell
  std::ranges::fill(solution, 0);
  const double limit = options.tolerance * options.tolerance * dot(residual, residual);
  check(std::isfinite(limit), kSolver, "the square of the right-hand side is {}, expected a finite number", limit);
  double previous = 0;
  for (int iteration = 0; iteration <= options.max_iterations; ++iteration) {
    if (dot(residual, residual) <= limit) return iteration;
    matrix.precondition(residual, preconditioned);
    const double product = dot(residual, preconditioned);
    const double keep = iteration == 0 ? 0 : product / previous;
    for (std::size_t i = 0; i < cells; ++i) direction[i] = preconditioned[i] + keep * direction[i];
    matrix.multiply(direction, image);
    const double step = product / dot(direction, image);
    add(solution, step, direction);
    add(residual, -step, image);
    previous = product;
  }
  fail(kSolver,
       "conjugate gradients left a residual of {:.1e} after {} iterations, expected {:.1e} of the right-hand side",
       std::sqrt(dot(residual, residual)), options.max_iterations, options.tolerance);
}

}  // namespace lockstep::datasets
