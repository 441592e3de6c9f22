// Generated samples: the spectrum of random fields, forces as derivatives of energies, the order of the integration of
// Lorenz's system, and files that depend on the seed alone.
#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include "data/datasets/hdf5_fields.h"
#include "data/generate/darcy.h"
#include "data/generate/gaussian_field.h"
#include "data/generate/generator.h"
#include "data/generate/lennard_jones.h"
#include "data/generate/lorenz.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

using Values = std::vector<double>;

// All fields of samples [0, count).
std::vector<Values> samples_of(const Generator& generator, std::uint64_t seed, std::int64_t count) {
  std::vector<Values> values;
  std::vector<double*> out;
  for (const data::Field& field : generator.fields())
    values.emplace_back(static_cast<std::size_t>(count * field.shape.elements()));
  for (Values& field : values) out.push_back(field.data());
  generator.generate(seed, 0, count, out);
  return values;
}

// |DFT|^2 / n^3 at the frequency (a, b, c), by its definition.
double power_of(const double* density, std::int64_t n, std::int64_t a, std::int64_t b, std::int64_t c) {
  double re = 0, im = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < n; ++k) {
        const double phase =
            2 * std::numbers::pi * static_cast<double>((a * i + b * j + c * k) % n) / static_cast<double>(n);
        const double value = density[(i * n + j) * n + k];
        re += value * std::cos(phase);
        im -= value * std::sin(phase);
      }
    }
  }
  return (re * re + im * im) / static_cast<double>(n * n * n);
}

TEST(GaussianField, HasItsSpectrum) {
  constexpr std::int64_t kSize = 8, kSamples = 1500;
  const GaussianField fields({.size = kSize, .min_index = -2.5, .max_index = 0.5});
  const auto values = samples_of(fields, 11, kSamples);
  struct Mode {
    std::int64_t a, b, c;
    double k;  // in units of the Nyquist frequency, of which 4 is the number
  };
  for (const Mode& mode : {Mode{1, 0, 0, 1.0 / 4}, Mode{0, 7, 0, 1.0 / 4}, Mode{0, 0, 4, 1}, Mode{2, 6, 1, 3.0 / 4},
                           Mode{3, 5, 4, std::sqrt(34.0) / 4}}) {
    double ratio = 0;
    for (std::int64_t s = 0; s < kSamples; ++s) {
      const double expected = std::exp(values[1][static_cast<std::size_t>(2 * s)]) *
                              std::pow(mode.k, values[1][static_cast<std::size_t>(2 * s + 1)]);
      ratio +=
          power_of(&values[0][static_cast<std::size_t>(s * kSize * kSize * kSize)], kSize, mode.a, mode.b, mode.c) /
          expected;
    }
    // |DFT|^2 has the relative variance 1, or 2 where the transform is real: five standard deviations of the mean.
    EXPECT_NEAR(ratio / kSamples, 1, 5 * std::sqrt(2.0 / kSamples)) << mode.a << mode.b << mode.c;
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(kSamples); ++s) {
    double sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += values[0][s * 512 + i];
    EXPECT_NEAR(sum, 0, 1e-9) << s;  // P(0) = 0
    EXPECT_TRUE(values[1][2 * s] >= -1 && values[1][2 * s] < 1 && values[1][2 * s + 1] >= -2.5 &&
                values[1][2 * s + 1] < 0.5);
  }
}

TEST(LennardJones, EnergiesOfPairsAreKnown) {
  const double nearest = std::cbrt(std::sqrt(2.0));  // where the energy of a pair is least
  Values forces(6);
  EXPECT_NEAR(lennard_jones(Values{0, 0, 0, nearest, 0, 0}, forces), -1, 1e-14);
  for (const double force : forces) EXPECT_NEAR(force, 0, 1e-13);
  EXPECT_NEAR(lennard_jones(Values{0, 0, 0, 0, 1, 0}, forces), 0, 1e-15);
  EXPECT_NEAR(forces[4], 24, 1e-12);  // they repel each other
  EXPECT_NEAR(forces[1], -24, 1e-12);
  EXPECT_EQ(lennard_jones(Values{0, 0, 0, 1, 1, 1}, {}), 4 * (std::pow(3.0, -6) - std::pow(3.0, -3)));
}

TEST(LennardJones, ForcesAreDerivatives) {
  const LennardJones clusters({.atoms = 6, .sweeps = 200});
  const auto values = samples_of(clusters, 3, 4);
  for (std::size_t s = 0; s < 4; ++s) {
    Values positions(values[0].begin() + static_cast<std::ptrdiff_t>(18 * s),
                     values[0].begin() + static_cast<std::ptrdiff_t>(18 * s + 18));
    EXPECT_NEAR(lennard_jones(positions, {}), values[1][s], 1e-12 * std::abs(values[1][s]));
    for (std::size_t i = 0; i < positions.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double place = positions[i];
      positions[i] = place + kStep;
      const double above = lennard_jones(positions, {});
      positions[i] = place - kStep;
      const double slope = (above - lennard_jones(positions, {})) / (2 * kStep);
      positions[i] = place;
      EXPECT_NEAR(values[2][18 * s + i], -slope, 1e-6 * (1 + std::abs(slope))) << s << " " << i;
    }
  }
}

// A pair in the sphere: the mean energy of Metropolis chains against the integral of the ensemble. The pair's places
// are uniform in the sphere but for the factor exp(-E / T).
TEST(LennardJones, SamplesAreOfTheEnsemble) {
  constexpr std::int64_t kSamples = 4000;
  constexpr double kTemperature = 0.5;
  const auto values = samples_of(LennardJones({.atoms = 2, .temperature = kTemperature, .sweeps = 2000}), 5, kSamples);
  double mean = 0;
  for (const double energy : values[1]) mean += energy / kSamples;
  // Distances of two uniform points in a sphere of radius R have the density 3 r^2 / R^3 (1 - 3 r / 4 R + r^3 / 16
  // R^3).
  const double radius = 1.2 * std::cbrt(2.0);
  double weight = 0, integral = 0;
  for (double r = 0.7; r < 2 * radius; r += 1e-4) {
    const double x = r / radius, r6 = std::pow(r, -6), energy = 4 * r6 * (r6 - 1);
    const double density = r * r * (1 - 0.75 * x + x * x * x / 16) * std::exp(-energy / kTemperature);
    weight += density;
    integral += density * energy;
  }
  EXPECT_NEAR(mean, integral / weight, 0.04);  // the deviation of an energy is some 0.35: seven of the mean
}

// x' = -x^2, y' = -x y with x(0) = y(0) = 1: both are 1 / (1 + t).
TEST(Lorenz, IntegrationIsOfFourthOrder) {
  const auto slope = [](const std::array<double, 2>& v) { return std::array{-v[0] * v[0], -v[0] * v[1]}; };
  const auto error = [&](int steps) {
    std::array<double, 2> state{1, 1};
    for (int i = 0; i < steps; ++i) state = runge_kutta(slope, state, 1.0 / steps);
    return std::hypot(state[0] - 0.5, state[1] - 0.5);
  };
  EXPECT_LT(error(16), 1e-6);
  EXPECT_NEAR(std::log2(error(16) / error(32)), 4, 0.2);
  EXPECT_NEAR(std::log2(error(32) / error(64)), 4, 0.2);
}

TEST(Lorenz, FutureFollowsThePast) {
  const Lorenz lorenz({.past = 5, .future = 3, .interval = 0.02});
  const auto values = samples_of(lorenz, 9, 10);
  for (std::size_t s = 0; s < 10; ++s) {
    Values series(values[0].begin() + static_cast<std::ptrdiff_t>(15 * s),
                  values[0].begin() + static_cast<std::ptrdiff_t>(15 * s + 15));
    series.insert(series.end(), values[1].begin() + static_cast<std::ptrdiff_t>(9 * s),
                  values[1].begin() + static_cast<std::ptrdiff_t>(9 * s + 9));
    for (std::size_t t = 0; t + 1 < 8; ++t) {
      std::array<double, 3> state{series[3 * t], series[3 * t + 1], series[3 * t + 2]};
      for (int i = 0; i < 100; ++i) state = runge_kutta(lorenz_slope, state, 0.0002);
      for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(series[3 * (t + 1) + axis], state[axis], 1e-5);
    }
    EXPECT_TRUE(std::abs(series[0]) < 25 && series[2] > 0 && series[2] < 50);  // on the attractor
  }
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("generate-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    omp_set_num_threads(threads_);
    std::filesystem::remove_all(folder_);
  }

  std::string write(const Generator& generator, const std::string& name, GenerateOptions options) {
    options.output = folder_ / name;
    write_samples(generator, options);
    std::ifstream file(options.output, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
  int threads_ = omp_get_max_threads();
};

TEST_F(Files, DependOnTheSeedAlone) {
  const Darcy darcy({.size = 8});
  const GaussianField gaussian({.size = 6});
  const LennardJones clusters({.atoms = 4, .sweeps = 50});
  const Lorenz lorenz({.past = 4, .future = 2});
  for (const Generator* generator : std::initializer_list<const Generator*>{&darcy, &gaussian, &clusters, &lorenz}) {
    const std::string name(generator->name());
    omp_set_num_threads(1);
    const std::string one = write(*generator, name + "1", {.samples = 70, .seed = 7});
    omp_set_num_threads(3);
    EXPECT_TRUE(one == write(*generator, name + "3", {.samples = 70, .seed = 7})) << name;
    EXPECT_FALSE(one == write(*generator, name + "8", {.samples = 70, .seed = 8})) << name;
  }
}

TEST_F(Files, AreReadAsFields) {
  const LennardJones clusters({.atoms = 3, .sweeps = 20});
  write(clusters, "few.h5", {.samples = 5, .seed = 1, .dtype = DType::F64});
  write(clusters, "more.h5", {.samples = 66, .seed = 1});
  const auto values = samples_of(clusters, 1, 66);
  const Hdf5Dataset few(
      {.files = {"few.h5"}, .dir = folder_, .inputs = {"positions"}, .targets = {"energies", "forces"}});
  const Hdf5Dataset more({.files = {"more.h5"}, .dir = folder_, .inputs = {"positions"}, .targets = {"energies"}});
  ASSERT_EQ(few.size(), 5);
  ASSERT_EQ(more.size(), 66);
  EXPECT_EQ(few.fields()[0], (data::Field{"positions", {3, 3}, DType::F64}));
  EXPECT_EQ(few.fields()[1], (data::Field{"energies", {}, DType::F64}));
  EXPECT_EQ(more.fields()[0].dtype, DType::F32);
  double positions[9], energy = 0, forces[9];
  std::byte* const out[] = {reinterpret_cast<std::byte*>(positions), reinterpret_cast<std::byte*>(&energy),
                            reinterpret_cast<std::byte*>(forces)};
  few.read(4, out);
  float single[9], single_energy = 0;
  std::byte* const out_single[] = {reinterpret_cast<std::byte*>(single), reinterpret_cast<std::byte*>(&single_energy)};
  more.read(4, out_single);  // a larger set begins with the smaller one
  EXPECT_EQ(energy, values[1][4]);
  EXPECT_EQ(single_energy, static_cast<float>(energy));
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(positions[i], values[0][36 + i]);
    EXPECT_EQ(forces[i], values[2][36 + i]);
    EXPECT_EQ(single[i], static_cast<float>(positions[i]));
  }
}

TEST_F(Files, MistakesLeaveNothing) {
  const Lorenz lorenz({.past = 4, .future = 2});
  EXPECT_THROW(write(lorenz, "a", {.samples = 0}), Error);
  EXPECT_THROW(write(lorenz, "a", {.samples = INT64_MAX / 2}), Error);
  EXPECT_THROW(write(lorenz, "none/a", {.samples = 1}), Error);
  EXPECT_THROW(write(lorenz, "a", {.samples = 1, .dtype = DType::I32}), Error);
  // Numbers above f32's largest one.
  EXPECT_THROW(write(Darcy({.size = 4, .source = 1e60}), "a", {.samples = 1}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  write(lorenz, "a", {.samples = 1});
  EXPECT_THROW(write(lorenz, "a", {.samples = 1}), Error);  // it exists
}

TEST(Options, AreChecked) {
  EXPECT_THROW(GaussianField({.size = 1}), Error);
  EXPECT_THROW(GaussianField({.min_index = 1, .max_index = 0}), Error);
  EXPECT_THROW(LennardJones({.atoms = 1}), Error);
  EXPECT_THROW(LennardJones({.temperature = 0}), Error);
  EXPECT_THROW(Lorenz({.past = 0}), Error);
  EXPECT_THROW(Lorenz({.interval = 0}), Error);
}

}  // namespace
}  // namespace lockstep::datasets
