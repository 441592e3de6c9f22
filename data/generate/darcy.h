// Darcy flow: the pressure u of a liquid in a porous medium of permeability a, -div(a grad u) = f on the unit square,
// u = 0 on its boundary, f constant. The permeability follows from a Gaussian random field with covariance
// (-Laplace + tau^2)^-alpha and zero slope at the boundary: two values by its sign, as in Li et al. (2021), "Fourier
// neural operator for parametric partial differential equations", appendix A.3.2, or its exponential.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/generate/generator.h"

namespace lockstep::datasets {

struct DarcyOptions {
  std::int64_t size = 64;   // cells per axis that a sample has
  std::int64_t refine = 1;  // odd: the equation is solved with so many times more cells per axis, and the middle one of
                            // refine x refine cells is kept
  bool log_normal = false;  // a = exp(spread * g / deviation of g), not high where g >= 0 and low elsewhere
  double low = 3, high = 12;
  double spread = 1;
  double alpha = 2, tau = 3;
  double source = 1;         // f
  double tolerance = 1e-10;  // of the solver (darcy_solver.h)
};

// Fields: "coefficient" and "solution", (size, size) each, rows first.
class Darcy final : public Generator {
 public:
  explicit Darcy(const DarcyOptions& options);  // throws Error for options out of range

  std::string_view name() const override { return "darcy"; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string parameters() const override;
  void generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                std::span<double* const> out) const override;

  // The random field at the centres of size * refine cells per axis: a sum of cosines, whose amplitudes do not depend
  // on the size.
  std::vector<double> field(RandomStream random) const;
  double deviation() const { return deviation_; }  // the root of the field's mean variance

 private:
  void sample(std::uint64_t seed, std::int64_t index, double* coefficient, double* solution) const;

  DarcyOptions options_;
  std::vector<data::Field> fields_;
  std::vector<double> cosines_;     // (kModes, size * refine): the eigenfunctions along one axis
  std::vector<double> amplitudes_;  // (kModes, kModes): the roots of the covariance's eigenvalues
  double deviation_ = 0;
};

}  // namespace lockstep::datasets
