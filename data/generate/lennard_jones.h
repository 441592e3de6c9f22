// Clusters of atoms with the Lennard-Jones potential, in its units (epsilon = sigma = 1):
//   E = sum over pairs of 4 (r^-12 - r^-6),   F = -dE/dx.
// Configurations are those of a canonical ensemble in a sphere: each sample is a Metropolis chain of its own
// (Metropolis et al., 1953), which starts at random places and cools down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/generate/generator.h"

namespace lockstep::datasets {

// Returns the energy of atoms at positions (x, y, z) one after the other; `forces` gets -dE/dx, unless it is empty.
double lennard_jones(std::span<const double> positions, std::span<double> forces);

struct LennardJonesOptions {
  std::int64_t atoms = 8;
  double temperature = 0.3;   // k_B T / epsilon
  std::int64_t sweeps = 600;  // trials per atom; the first half cools from three times the temperature
};

// Fields: "positions" (atoms, 3), whose mean is 0, "energies" () and "forces" (atoms, 3).
class LennardJones final : public Generator {
 public:
  explicit LennardJones(const LennardJonesOptions& options);  // throws Error for options out of range

  std::string_view name() const override { return "lennard-jones"; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string parameters() const override;
  void generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                std::span<double* const> out) const override;

 private:
  void place(RandomStream& random, std::span<double> positions) const;
  void sweep(RandomStream& random, std::span<double> positions, double temperature) const;

  LennardJonesOptions options_;
  std::vector<data::Field> fields_;
  double radius_ = 0;  // of the sphere, from the origin
};

}  // namespace lockstep::datasets
