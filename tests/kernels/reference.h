// Shared by the kernel tests: seeded values, references with the magnitude that bounds their rounding, thread counts.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "lockstep/core/random.h"

namespace lockstep::generic {

using FloatTypes = ::testing::Types<float, double>;

template <class T>
constexpr double kUnit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;  // unit roundoff

template <class T>
std::vector<T> random_values(std::int64_t n, std::uint64_t seed, double centre = 0) {
  RandomStream random(seed, 77);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& v : values) v = static_cast<T>(centre + random.uniform(-1, 1));
  return values;
}

// Value of outputs before a kernel runs; an element that the kernel does not write keeps it.
template <class T>
std::vector<T> unwritten(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n), std::numeric_limits<T>::quiet_NaN());
}

// A sum with the sum of its terms' magnitudes: however a sum of k terms is ordered, its error is at most
// (k - 1) u * magnitude to first order (Higham, Accuracy and Stability, 4.4).
struct Exact {
  double value = 0, magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

// `roundings` bounds those on the way to each element: the kernel's, and for T = double also the reference's own.
template <class T>
void expect_close(const std::vector<T>& got, const std::vector<Exact>& want, double roundings) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = 2 * roundings * kUnit<T> * want[i].magnitude;
    ASSERT_LE(std::abs(static_cast<double>(got[i]) - want[i].value), bound)
        << "element " << i << " is " << got[i] << ", expected " << want[i].value;
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The number of OpenMP threads within a scope.
class Threads {
 public:
  explicit Threads(int n) : before_(omp_get_max_threads()) { omp_set_num_threads(n); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// run() returns what a kernel wrote; it must be the same bits with one thread and with three.
template <class Run>
void expect_thread_invariant(const Run& run) {
  const auto with = [&](int n) {
    const Threads threads(n);
    return run();
  };
  EXPECT_TRUE(same_bits(with(1), with(3)));
}

}  // namespace lockstep::generic
