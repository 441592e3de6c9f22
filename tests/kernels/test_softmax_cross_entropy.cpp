#include <array>
#include <limits>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/softmax_cross_entropy.h"
#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

template <class T>
class CrossEntropy : public ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, FloatTypes);

std::vector<std::int32_t> random_targets(std::int64_t n, std::int64_t c) {
  RandomStream random(9, 9);
  std::vector<std::int32_t> targets(static_cast<std::size_t>(n));
  for (auto& t : targets) t = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(c)));
  return targets;
}

struct Reference {
  std::vector<double> probabilities;
  double loss = 0, weight = 0;
};

template <class T>
Reference reference(const kernels::generic::CrossEntropyOptions& o, const std::vector<T>& z,
                    const std::vector<std::int32_t>& targets, const std::vector<T>& weights) {
  Reference r;
  r.probabilities.resize(z.size());
  const std::size_t c = static_cast<std::size_t>(o.classes);
  const auto w = [&](std::size_t j) { return weights.empty() ? 1.0 : static_cast<double>(weights[j]); };
  double total = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    double denominator = 0, smooth = 0;
    for (std::size_t j = 0; j < c; ++j) denominator += std::exp(static_cast<double>(z[i * c + j]));
    const auto log_p = [&](std::size_t j) { return static_cast<double>(z[i * c + j]) - std::log(denominator); };
    for (std::size_t j = 0; j < c; ++j) {
      r.probabilities[i * c + j] = std::exp(log_p(j));
      smooth -= w(j) * log_p(j);
    }
    const std::size_t y = static_cast<std::size_t>(targets[i]);
    total += (1 - o.label_smoothing) * w(y) * -log_p(y) + o.label_smoothing / static_cast<double>(c) * smooth;
    r.weight += w(y);
  }
  r.loss = targets.empty() ? 0 : total / r.weight;
  return r;
}

struct Case {
  std::int64_t n, c;
  double smoothing;
  bool weighted;
};
const std::vector<Case> kCases = {{0, 3, 0, false},   {1, 1, 0, false},  {1, 5, 0, true},      {7, 3, 0.1, false},
                                  {9, 17, 0.3, true}, {70, 10, 0, true}, {130, 10, 0.1, true}, {3, 4, 1.0, false}};

TYPED_TEST(CrossEntropy, ForwardMatchesDefinition) {
  using T = TypeParam;
  for (const Case& k : kCases) {
    const kernels::generic::CrossEntropyOptions o{.samples = k.n, .classes = k.c, .label_smoothing = k.smoothing};
    auto z = random_values<T>(k.n * k.c, 1);
    for (T& v : z) v *= T(5);
    const auto targets = random_targets(k.n, k.c);
    const auto w = k.weighted ? random_values<T>(k.c, 2, 1.5) : std::vector<T>{};
    auto p = unwritten<T>(k.n * k.c);
    T loss = -1, weight = -1;
    kernels::generic::softmax_cross_entropy_forward<T>(o, z.data(), targets.data(), w.empty() ? nullptr : w.data(),
                                                       p.data(), &loss, &weight);
    const Reference want = reference(o, z, targets, w);
    // Sums are in double, the exponent of size 5 loses that factor there, results are rounded once.
    const double bound = 2 * kUnit<T> + 50 * static_cast<double>(k.n + k.c) * kUnit<double>;
    for (std::size_t i = 0; i < p.size(); ++i) ASSERT_NEAR(static_cast<double>(p[i]), want.probabilities[i], bound);
    EXPECT_NEAR(static_cast<double>(loss), want.loss, bound * (1 + want.loss));
    EXPECT_NEAR(static_cast<double>(weight), want.weight, bound * (1 + want.weight));
  }
}

// d(loss) by central differences in f64: error h^2 and rounding / h, both below 1e-9 for values of size 1.
TEST(CrossEntropy, BackwardMatchesFiniteDifferences) {
  for (const Case& k : kCases) {
    const kernels::generic::CrossEntropyOptions o{.samples = k.n, .classes = k.c, .label_smoothing = k.smoothing};
    auto z = random_values<double>(k.n * k.c, 3);
    const auto targets = random_targets(k.n, k.c);
    const auto w = k.weighted ? random_values<double>(k.c, 4, 1.5) : std::vector<double>{};
    const double* weights = w.empty() ? nullptr : w.data();
    auto p = unwritten<double>(k.n * k.c), dz = p, scratch = p;
    double loss = 0, weight = 0;
    kernels::generic::softmax_cross_entropy_forward(o, z.data(), targets.data(), weights, p.data(), &loss, &weight);
    kernels::generic::softmax_cross_entropy_backward(o, p.data(), targets.data(), weights, 0.7, weight, dz.data());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double before = z[i], h = 1e-5;
      double up = 0, down = 0, ignored = 0;
      z[i] = before + h;
      kernels::generic::softmax_cross_entropy_forward(o, z.data(), targets.data(), weights, scratch.data(), &up,
                                                      &ignored);
      z[i] = before - h;
      kernels::generic::softmax_cross_entropy_forward(o, z.data(), targets.data(), weights, scratch.data(), &down,
                                                      &ignored);
      z[i] = before;
      ASSERT_NEAR(dz[i], 0.7 * (up - down) / (2 * h), 1e-9);
    }
    kernels::generic::softmax_cross_entropy_backward(o, p.data(), targets.data(), weights, 0.7, weight, p.data());
    EXPECT_EQ(p, dz);  // in place
  }
}

// With dloss == weight_total a shard's gradient must not depend on the shard's own weight.
TYPED_TEST(CrossEntropy, WeightAsGradientOfTheLossGivesThePlainSum) {
  using T = TypeParam;
  const kernels::generic::CrossEntropyOptions all{.samples = 7, .classes = 5}, part{.samples = 3, .classes = 5};
  const auto p = random_values<T>(35, 1, 2);
  const auto targets = random_targets(7, 5);
  auto whole = unwritten<T>(35), first = unwritten<T>(15);
  kernels::generic::softmax_cross_entropy_backward<T>(all, p.data(), targets.data(), nullptr, T(7), T(7), whole.data());
  kernels::generic::softmax_cross_entropy_backward<T>(part, p.data(), targets.data(), nullptr, T(3), T(3),
                                                      first.data());
  whole.resize(15);
  EXPECT_TRUE(same_bits(whole, first));
  const std::vector<T> none(5, T(0));  // classes without weight: no gradient, and no 0 / 0
  kernels::generic::softmax_cross_entropy_backward<T>(part, p.data(), targets.data(), none.data(), T(0), T(0),
                                                      first.data());
  for (const T d : first) EXPECT_EQ(d, T(0));
  // The loss of a part without weight is 0 whatever its classes are, and so is its slope in a larger loss.
  kernels::generic::softmax_cross_entropy_backward<T>(part, p.data(), targets.data(), nullptr, T(2), T(0),
                                                      first.data());
  for (const T d : first) EXPECT_EQ(d, T(0));
}

TYPED_TEST(CrossEntropy, AClassOfWeight0MayHaveAnyLogits) {
  using T = TypeParam;
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> z{1, 2, 3, kNan, kNan, kNan}, weights{1, 0, 1};
  const std::vector<std::int32_t> targets{0, 1};
  const kernels::generic::CrossEntropyOptions both{.samples = 2, .classes = 3}, one{.samples = 1, .classes = 3};
  std::vector<T> p(6), d(6), p_one(3), d_one(3);
  T loss = 0, weight = 0, loss_one = 0, weight_one = 0;
  kernels::generic::softmax_cross_entropy_forward<T>(both, z.data(), targets.data(), weights.data(), p.data(), &loss,
                                                     &weight);
  kernels::generic::softmax_cross_entropy_forward<T>(one, z.data(), targets.data(), weights.data(), p_one.data(),
                                                     &loss_one, &weight_one);
  EXPECT_EQ(weight, T(1));
  EXPECT_EQ(loss, loss_one);
  kernels::generic::softmax_cross_entropy_backward<T>(both, p.data(), targets.data(), weights.data(), T(2), weight,
                                                      d.data());
  kernels::generic::softmax_cross_entropy_backward<T>(one, p_one.data(), targets.data(), weights.data(), T(2),
                                                      weight_one, d_one.data());
  d_one.resize(6);  // zeros
  EXPECT_EQ(d, d_one);
}

TYPED_TEST(CrossEntropy, LargeLogitsStayFinite) {
  using T = TypeParam;
  const std::vector<T> z{T(1e30), T(-1e30), 0, T(-800), T(-801), T(-802)};
  const std::vector<std::int32_t> targets{0, 1};
  std::vector<T> p(6);
  T loss = 0, weight = 0;
  kernels::generic::softmax_cross_entropy_forward<T>({.samples = 2, .classes = 3}, z.data(), targets.data(), nullptr,
                                                     p.data(), &loss, &weight);
  const double want = (1 + std::log(1 + std::exp(-1.0) + std::exp(-2.0))) / 2;
  EXPECT_NEAR(static_cast<double>(loss), want, 4 * kUnit<T> + 1000 * kUnit<double>);
  EXPECT_EQ(p[0], T(1));
  EXPECT_EQ(p[1], T(0));
}

TYPED_TEST(CrossEntropy, TargetOutOfRangeNamesRowValueAndRange) {
  using T = TypeParam;
  const auto z = random_values<T>(6, 1);
  std::vector<T> p(6);
  T loss = 0, weight = 0;
  for (const std::int32_t bad : {3, -1}) {
    const std::array<std::int32_t, 2> targets{1, bad};
    try {
      kernels::generic::softmax_cross_entropy_forward<T>({.samples = 2, .classes = 3}, z.data(), targets.data(),
                                                         nullptr, p.data(), &loss, &weight);
      FAIL() << "target " << bad << " was accepted";
    } catch (const SampleError& e) {
      EXPECT_EQ(std::string(e.what()), "[cross_entropy] the target of row 1 of the batch is " + std::to_string(bad) +
                                           ", expected a class from 0 to 2");
      EXPECT_EQ(e.row(), 1);
    }
    EXPECT_THROW(kernels::generic::count_correct<T>(2, 3, 1, z.data(), targets.data()), SampleError);
  }
}

TYPED_TEST(CrossEntropy, CountCorrectPutsLowerIndexFirst) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> z{1, 3, 3, 2, /**/ 1, 3, 3, 2, /**/ 0, 0, 0, 0, /**/ nan, nan, nan, nan};
  const std::vector<std::int32_t> targets{1, 2, 3, 0};
  EXPECT_EQ(kernels::generic::count_correct<T>(4, 4, 1, z.data(), targets.data()), 1);
  EXPECT_EQ(kernels::generic::count_correct<T>(4, 4, 2, z.data(), targets.data()), 2);
  EXPECT_EQ(kernels::generic::count_correct<T>(4, 4, 3, z.data(), targets.data()), 2);
  EXPECT_EQ(kernels::generic::count_correct<T>(4, 4, 4, z.data(), targets.data()), 4);
  EXPECT_EQ(kernels::generic::count_correct<T>(0, 4, 1, z.data(), targets.data()), 0);
}

TYPED_TEST(CrossEntropy, DoesNotDependOnThreads) {
  using T = TypeParam;
  for (const std::int64_t c : {10, 129}) {
    const kernels::generic::CrossEntropyOptions o{.samples = 331, .classes = c, .label_smoothing = 0.1};
    const auto z = random_values<T>(331 * c, 1), w = random_values<T>(c, 2, 1.5);
    const auto targets = random_targets(331, c);
    expect_thread_invariant([&] {
      auto p = unwritten<T>(331 * c), dz = p;
      T loss = 0, weight = 0;
      kernels::generic::softmax_cross_entropy_forward<T>(o, z.data(), targets.data(), w.data(), p.data(), &loss,
                                                         &weight);
      kernels::generic::softmax_cross_entropy_backward<T>(o, p.data(), targets.data(), w.data(), T(1), weight,
                                                          dz.data());
      dz.insert(dz.end(), {loss, weight});
      return dz;
    });
  }
}

// The same positions as rows of samples and as columns of one sample: the same bits, for classes and for probabilities,
// with weights of positions, ignored ones and smoothing. 300 positions are more than a block.
TYPED_TEST(CrossEntropy, ColumnsAreRows) {
  using T = TypeParam;
  const std::int64_t n = 300;
  for (const std::int64_t c : {1, 2, 5, 40}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const bool soft : {false, true}) {
        const kernels::generic::CrossEntropyOptions rows{
            .samples = n, .classes = c, .label_smoothing = smoothing, .ignore_index = 0};
        kernels::generic::CrossEntropyOptions columns = rows;
        columns.samples = 1;
        columns.positions = n;
        const auto z = random_values<T>(n * c, 1, 5), t = random_values<T>(n * c, 2), w = random_values<T>(c, 3, 1.5);
        auto weights = random_values<T>(n, 4);
        weights[7] = 0;
        const auto targets = random_targets(n, c);
        const auto transposed = [&](const std::vector<T>& x) {
          std::vector<T> y(x.size());
          for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            for (std::size_t j = 0; j < static_cast<std::size_t>(c); ++j)
              y[j * static_cast<std::size_t>(n) + i] = x[i * static_cast<std::size_t>(c) + j];
          }
          return y;
        };
        const auto run = [&](const kernels::generic::CrossEntropyOptions& o, const std::vector<T>& x,
                             const std::vector<T>& probabilities) {
          const kernels::generic::CrossEntropyTargets<T> of(soft ? nullptr : targets.data(),
                                                            soft ? probabilities.data() : nullptr, weights.data());
          auto p = unwritten<T>(n * c);
          T loss = 0, weight = 0;
          kernels::generic::softmax_cross_entropy_forward<T>(o, x.data(), of, w.data(), p.data(), &loss, &weight);
          kernels::generic::softmax_cross_entropy_backward<T>(o, p.data(), of, w.data(), T(0.7), weight, p.data());
          p.push_back(loss);
          p.push_back(weight);
          return p;
        };
        auto by_rows = run(rows, z, t), by_columns = run(columns, transposed(z), transposed(t));
        ASSERT_EQ(by_rows[static_cast<std::size_t>(n * c)], by_columns[static_cast<std::size_t>(n * c)]);
        ASSERT_EQ(by_rows.back(), by_columns.back());
        by_rows.resize(static_cast<std::size_t>(n * c));
        by_columns.resize(static_cast<std::size_t>(n * c));
        EXPECT_TRUE(same_bits(transposed(by_rows), by_columns)) << c << " classes, smoothing " << smoothing << soft;
      }
    }
  }
}

TYPED_TEST(CrossEntropy, OfPositionsDoesNotDependOnThreads) {
  using T = TypeParam;
  const kernels::generic::CrossEntropyOptions o{.samples = 3, .classes = 7, .label_smoothing = 0.1, .positions = 4001};
  const auto z = random_values<T>(3 * 7 * 4001, 1);
  const auto targets = random_targets(3 * 4001, 7);
  expect_thread_invariant([&] {
    auto p = unwritten<T>(3 * 7 * 4001), dz = p;
    T loss = 0, weight = 0;
    kernels::generic::softmax_cross_entropy_forward<T>(o, z.data(), targets.data(), nullptr, p.data(), &loss, &weight);
    kernels::generic::softmax_cross_entropy_backward<T>(o, p.data(), targets.data(), nullptr, T(1), weight, dz.data());
    dz.insert(dz.end(), {loss, weight});
    return dz;
  });
}

// Several rows' exponentials are taken at a time, or a part of one row's.
TYPED_TEST(CrossEntropy, RowsDoNotDependOnTheirNeighbours) {
  using T = TypeParam;
  const std::int64_t n = 60;  // no more than parts of the sum: the loss of each row is one part
  for (const std::int64_t c : {1, 3, 10, 128, 129, 255, 256, 257, 1000}) {
    const auto z = random_values<T>(n * c, 1, 5);
    const auto targets = random_targets(n, c);
    auto all = unwritten<T>(n * c), softmax = all, alone = all, softmax_alone = all;
    T loss = 0, weight = 0;
    kernels::generic::softmax_cross_entropy_forward<T>({.samples = n, .classes = c, .label_smoothing = 0.1}, z.data(),
                                                       targets.data(), nullptr, all.data(), &loss, &weight);
    kernels::generic::softmax_forward<T>(n, c, z.data(), softmax.data());
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      T of_row = 0;
      kernels::generic::softmax_cross_entropy_forward<T>({.samples = 1, .classes = c, .label_smoothing = 0.1},
                                                         z.data() + i * c, &targets[static_cast<std::size_t>(i)],
                                                         nullptr, alone.data() + i * c, &of_row, &weight);
      kernels::generic::softmax_forward<T>(1, c, z.data() + i * c, softmax_alone.data() + i * c);
      sum += static_cast<double>(of_row);
    }
    EXPECT_TRUE(same_bits(all, alone)) << c << " classes";
    EXPECT_TRUE(same_bits(softmax, softmax_alone)) << c << " classes";
    EXPECT_NEAR(static_cast<double>(loss), sum / n, 4 * kUnit<T> * (1 + sum / n));
  }
}

}  // namespace
}  // namespace lockstep::generic
