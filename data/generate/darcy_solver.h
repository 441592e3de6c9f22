// Solves -div(a grad u) = f on the unit square with u = 0 on its boundary by finite volumes: n x n square cells, values
// at their centres, five-point fluxes whose coefficient on a face is the harmonic mean of the two cells' (exact for a
// jump of `a` on the face; half a cell at the boundary). The error is of second order in 1/n for smooth coefficients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::datasets {

// The matrix of the equation, symmetric and positive definite, and a preconditioner of it. Cell (row, column) has
// number row * n + column. Immutable; any thread.
class DarcyMatrix {
 public:
  // Throws Error for a coefficient that is not finite or not above 0, and unless there is one for each of the cells.
  DarcyMatrix(std::int64_t n, std::span<const double> coefficient);

  std::int64_t cells() const { return static_cast<std::int64_t>(diagonal_.size()); }
  void multiply(std::span<const double> x, std::span<double> y) const;
  // z = M^-1 r, where M is the modified incomplete Cholesky factorisation without fill (Gustafsson, "A class of first
  // order factorization methods", 1978).
  void precondition(std::span<const double> r, std::span<double> z) const;

 private:
  void factorise();

  std::size_t n_;
  std::vector<double> diagonal_, right_, below_;  // minus the entries for the next column and the next row
  std::vector<double> inverse_;                   // of the factor's diagonal
};

struct DarcySolve {
  double tolerance = 1e-10;   // bound of |b - A u| / |b|, by which the iteration ends
  int max_iterations = 2000;  // of conjugate gradients
};

// Returns the number of iterations. `source` has f at the centres, `solution` gets u there. Throws Error if the
// tolerance is not reached.
int solve_darcy(const DarcyMatrix& matrix, std::span<const double> source, std::span<double> solution,
                const DarcySolve& options = {});

}  // namespace lockstep::datasets
