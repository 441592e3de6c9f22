// Transforms of every length against sums in f64, and bits that depend neither on threads nor on neighbours.
#include "lockstep/kernels/generic/fourier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "tests/kernels/larger.h"
#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

using kernels::generic::FourierTransform;
using Kind = FourierOptions::Kind;

template <class T>
std::vector<T> transformed(const FourierOptions& options, std::int64_t batch, const std::vector<T>& x,
                           std::int64_t elements) {
  const FourierTransform<T> transform(options, batch);
  std::vector<T> y(static_cast<std::size_t>(elements), std::numeric_limits<T>::quiet_NaN());
  std::vector<T> workspace(transform.workspace_bytes() / sizeof(T) + 1, T(7));
  transform.run(x.data(), y.data(), workspace.data());
  EXPECT_EQ(workspace.back(), T(7)) << "wrote behind its workspace";
  return y;
}

template <class T>
void expect_sums(std::int64_t n, double tolerance) {
  const auto x = random_values<T>(2 * n, static_cast<std::uint64_t>(n));
  const auto y = transformed<T>({.sizes = {n}, .kept = {n}}, 1, x, 2 * n);
  const auto half = transformed<T>({.kind = Kind::ToHalf, .sizes = {n}, .kept = {n / 2 + 1}}, 1, x, 2 * (n / 2 + 1));
  const auto back = transformed<T>(
      {.kind = Kind::FromHalf, .sizes = {n}, .kept = {n / 2 + 1}, .inverse = true, .scale = 1 / static_cast<double>(n)},
      1, half, n);
  std::vector<std::complex<double>> roots;
  for (std::int64_t j = 0; j < n; ++j)
    roots.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n)));
  double worst = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    std::complex<double> whole, of_real;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const std::complex<double> root = roots[static_cast<std::size_t>(j * k % n)];
      whole += root * std::complex<double>(static_cast<double>(x[2 * at]), static_cast<double>(x[2 * at + 1]));
      of_real += root * static_cast<double>(x[at]);
    }
    const auto at = static_cast<std::size_t>(2 * k);
    worst = larger(worst, std::abs(whole - std::complex<double>(y[at], y[at + 1])));
    if (k <= n / 2) worst = larger(worst, std::abs(of_real - std::complex<double>(half[at], half[at + 1])));
  }
  for (std::size_t j = 0; j < back.size(); ++j)
    worst = larger(worst, std::abs(static_cast<double>(x[j]) - static_cast<double>(back[j])));
  EXPECT_LT(worst, tolerance * std::sqrt(static_cast<double>(n))) << n;
}

TEST(Fourier, OfEveryLength) {
  for (std::int64_t n = 1; n <= 70; ++n) {
    expect_sums<float>(n, 4e-6);
    expect_sums<double>(n, 1e-14);
  }
  for (const std::int64_t n : {96, 121, 210, 256, 421, 1000, 1024, 1331}) {
    expect_sums<float>(n, 4e-6);
    expect_sums<double>(n, 2e-14);
  }
}

struct Problem {
  FourierOptions options;
  std::int64_t batch, from, to;  // elements of an item before and after
};

std::vector<Problem> problems() {
  return {{{.sizes = {12}, .kept = {12}}, 37, 24, 24},
          {{.kind = Kind::ToHalf, .sizes = {12, 10}, .kept = {6, 4}}, 3, 120, 48},
          {{.kind = Kind::ToHalf, .sizes = {12, 10}, .kept = {12, 6}}, 19, 120, 144},
          {{.kind = Kind::FromHalf, .sizes = {4, 6, 9}, .kept = {4, 2, 5}, .inverse = true}, 18, 80, 216},
          {{.kind = Kind::FromHalf, .sizes = {20, 6, 9}, .kept = {4, 6, 5}, .inverse = true}, 2, 240, 1080}};
}

// Alone, an item has other neighbours in a register and goes another way through the axes.
TEST(Fourier, BitsOfAnItemDependOnItAlone) {
  for (const Problem& p : problems()) {
    const auto x = random_values<float>(p.batch * p.from, 9);
    const auto all = transformed(p.options, p.batch, x, p.batch * p.to);
    for (std::int64_t i = 0; i < p.batch; ++i) {
      const std::vector<float> item(x.begin() + i * p.from, x.begin() + (i + 1) * p.from);
      const auto alone = transformed(p.options, 1, item, p.to);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + i * p.to)) << "item " << i;
    }
  }
}

TEST(Fourier, BitsDoNotDependOnThreads) {
  for (Problem p : problems()) {
    p.batch *= 50;  // enough for several threads to be woken
    const auto x = random_values<float>(p.batch * p.from, 9);
    const auto with = [&](int threads) {
      const Threads scope(threads);
      return transformed(p.options, p.batch, x, p.batch * p.to);
    };
    EXPECT_EQ(with(1), with(3));
  }
}

}  // namespace
}  // namespace lockstep::generic
