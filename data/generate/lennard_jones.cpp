#include "data/generate/lennard_jones.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::datasets {
namespace {

using Vector = std::array<double, 3>;

double square(double x) { return x * x; }

double squared_distance(const double* a, const double* b) {
  return square(a[0] - b[0]) + square(a[1] - b[1]) + square(a[2] - b[2]);
}

double pair_energy(double squared) {
  const double r6 = 1 / (squared * squared * squared);
  return 4 * r6 * (r6 - 1);
}

// The energy between the atom `moved` at `place` and all other atoms.
double energy_of(std::span<const double> positions, std::size_t moved, const Vector& place) {
  double energy = 0;
  for (std::size_t j = 0; j < positions.size() / 3; ++j) {
    if (j != moved) energy += pair_energy(squared_distance(place.data(), &positions[3 * j]));
  }
  return energy;
}

}  // namespace

double lennard_jones(std::span<const double> positions, std::span<double> forces) {
  const std::size_t atoms = positions.size() / 3;
  std::ranges::fill(forces, 0);
  double energy = 0;
  for (std::size_t i = 0; i < atoms; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double squared = squared_distance(&positions[3 * i], &positions[3 * j]);
      energy += pair_energy(squared);
      if (forces.empty()) continue;
      const double r6 = 1 / (squared * squared * squared);
      const double factor = 24 * r6 * (2 * r6 - 1) / squared;  // -dE/dr / r
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const double force = factor * (positions[3 * i + axis] - positions[3 * j + axis]);
        forces[3 * i + axis] += force;
        forces[3 * j + axis] -= force;
      }
    }
  }
  return energy;
}

LennardJones::LennardJones(const LennardJonesOptions& options) : options_(options) {
  const LennardJonesOptions& o = options_;
  check(o.atoms >= 2 && o.atoms <= 1000, "lennard-jones", "--atoms is {}, expected 2 to 1000", o.atoms);
  check(o.temperature >= 0.01 && o.temperature <= 10, "lennard-jones", "--temperature is {}, expected 0.01 to 10",
        o.temperature);
  check(o.sweeps >= 2 && o.sweeps <= 1000000, "lennard-jones", "--sweeps is {}, expected 2 to 1000000", o.sweeps);
  const Shape vectors({o.atoms, 3});
  fields_ = {{"positions", vectors, DType::F64}, {"energies", Shape(), DType::F64}, {"forces", vectors, DType::F64}};
  radius_ = 1.2 * math::pow(static_cast<double>(o.atoms), 1.0 / 3);  // twice the radius of a dense cluster
}

std::string LennardJones::parameters() const {
  const LennardJonesOptions& o = options_;
  return nlohmann::json{
      {"equation", "energies = sum over pairs of 4 (r^-12 - r^-6), forces = -d energies / d positions"},
      {"atoms", o.atoms},
      {"temperature", o.temperature},
      {"sweeps", o.sweeps},
      {"radius", radius_}}
      .dump();
}

// Random places in the sphere, one by one, that are not too near to each other: at first 0.9, and less if none is
// found.
void LennardJones::place(RandomStream& random, std::span<double> positions) const {
  double nearest = 0.9;
  for (std::size_t i = 0; i < positions.size() / 3;) {
    double* const at = &positions[3 * i];
    for (std::size_t axis = 0; axis < 3; ++axis) at[axis] = random.uniform(-radius_, radius_);
    constexpr Vector kOrigin{};
    bool fits = squared_distance(at, kOrigin.data()) <= square(radius_);
    for (std::size_t j = 0; fits && j < i; ++j) fits = squared_distance(at, &positions[3 * j]) >= square(nearest);
    nearest *= fits ? 1 : 0.9999;
    i += fits ? 1 : 0;
  }
}

// One trial for each atom.
void LennardJones::sweep(RandomStream& random, std::span<double> positions, double temperature) const {
  constexpr double kStep = 0.15;  // the largest change of a coordinate
  for (std::size_t i = 0; i < positions.size() / 3; ++i) {
    const Vector old{positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]};
    Vector trial = old;
    for (double& coordinate : trial) coordinate += random.uniform(-kStep, kStep);
    const double chance = random.uniform();
    if (square(trial[0]) + square(trial[1]) + square(trial[2]) > square(radius_)) continue;
    const double rise = energy_of(positions, i, trial) - energy_of(positions, i, old);
    if (rise <= 0 || chance < math::exp(-rise / temperature)) std::ranges::copy(trial, &positions[3 * i]);
  }
}

void LennardJones::generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                            std::span<double* const> out) const {
  const auto size = static_cast<std::size_t>(3 * options_.atoms);
  for_each_sample(count, [&](std::int64_t s) {
    const auto sample = static_cast<std::size_t>(s);
    const std::span<double> positions(out[0] + sample * size, size), forces(out[2] + sample * size, size);
    RandomStream random = this->random(seed, first + s);
    place(random, positions);
    const std::int64_t cooling = options_.sweeps / 2;
    for (std::int64_t i = 0; i < options_.sweeps; ++i) {
      const double excess = i < cooling ? 2 - 2 * static_cast<double>(i) / static_cast<double>(cooling) : 0;
      sweep(random, positions, options_.temperature * (1 + excess));
    }
    Vector centre{};
    for (std::size_t i = 0; i < size; ++i) centre[i % 3] += positions[i] / static_cast<double>(options_.atoms);
    for (std::size_t i = 0; i < size; ++i) positions[i] -= centre[i % 3];
    out[1][sample] = lennard_jones(positions, forces);
  });
}

}  // namespace lockstep::datasets
