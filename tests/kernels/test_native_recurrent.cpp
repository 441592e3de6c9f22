// Steps of recurrent layers: the same bits at every level, at sizes that are no multiple of a register, and gates that
// are as accurate as their header says.
#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using kernels::native::kLanes;
using kernels::native::Strided;

template <class T>
class NativeRecurrent : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NativeRecurrent, Types);

template <class T>
const kernels::native::RecurrentTable<T>& recurrent_of(const kernels::NativeKernels& k) {
  if constexpr (std::is_same_v<T, float>) {
    return k.recurrent_f32;
  } else {
    return k.recurrent_f64;
  }
}

// Rows of an array with a gap between them; `unwritten` where nothing else is put.
template <class T>
struct Rows {
  std::int64_t rows, stride;
  std::vector<T> values;

  Rows(std::int64_t count, std::int64_t n)
      : rows(count), stride(n + 3), values(generic::unwritten<T>(count * stride)) {}
  Rows(std::int64_t count, std::int64_t n, std::uint64_t seed) : Rows(count, n) {
    values = generic::random_values<T>(count * stride, seed);
  }
  operator Strided<T>() { return {values.data(), stride}; }
  operator Strided<const T>() const { return {values.data(), stride}; }
  T at(std::int64_t row, std::int64_t column) const { return values[static_cast<std::size_t>(row * stride + column)]; }
};

std::int64_t whole(std::int64_t n, std::int64_t panel) { return (n + panel - 1) / panel * panel; }

// W_hh (G, H), and packed for both passes.
template <class T>
struct Weights {
  std::int64_t hidden, gates;
  std::vector<T> plain, forward, backward;

  Weights(std::int64_t h, std::int64_t g)
      : hidden(h),
        gates(g),
        plain(generic::random_values<T>(g * h * h, 1)),
        forward(static_cast<std::size_t>(whole(h, kLanes) * h * g)),
        backward(static_cast<std::size_t>(whole(h, 2 * kLanes) * h * g)) {
    for (std::int64_t row = 0; row < g * h; ++row) {
      for (std::int64_t k = 0; k < h; ++k) {
        const T w = plain[static_cast<std::size_t>(row * h + k)];
        const std::int64_t gate = row / h, j = row % h;
        forward[static_cast<std::size_t>(((j / kLanes * h + k) * g + gate) * kLanes + j % kLanes)] = w;
        backward[static_cast<std::size_t>((k / (2 * kLanes) * g * h + row) * 2 * kLanes + k % (2 * kLanes))] = w;
      }
    }
  }
};

// The arrays of one step.
template <class T>
struct Step {
  std::int64_t rows, hidden, gates, sums, panels;
  bool lstm;
  Weights<T> weights;
  std::vector<T> bias;
  Rows<T> product, before, c, dy, after_gradient;                       // given
  Rows<T> gate_values, kept, y, after, next_c;                          // of the step forward
  Rows<T> dh, dc, own_sums, by_product, by_hidden, previous, dh_alone;  // and backward

  Step(std::int64_t row_count, std::int64_t hidden_size, bool is_lstm)
      : rows(row_count),
        hidden(hidden_size),
        gates(is_lstm ? 4 : 3),
        sums(gates * hidden_size),
        panels(whole(hidden_size, 2 * kLanes)),
        lstm(is_lstm),
        weights(hidden_size, gates),
        bias(generic::random_values<T>(sums, 2)),
        product(row_count, sums, 3),
        before(row_count, panels, 4),
        c(row_count, panels, 5),
        dy(row_count, hidden_size, 6),
        after_gradient(row_count, sums, 7),
        gate_values(row_count, sums),
        kept(row_count, hidden_size),
        y(row_count, hidden_size),
        after(row_count, panels),
        next_c(c),
        dh(row_count, panels, 8),
        dc(row_count, panels, 9),
        own_sums(row_count, sums),
        by_product(row_count, sums),
        by_hidden(row_count, sums),
        previous(row_count, hidden_size),
        dh_alone(dh) {}

  void run(const kernels::NativeKernels& kernels) {
    const auto& table = recurrent_of<T>(kernels);
    (lstm ? table.lstm : table.gru)({.rows = rows,
                                     .hidden = hidden,
                                     .weights = weights.forward.data(),
                                     .bias = bias.data(),
                                     .product = product,
                                     .gates = gate_values,
                                     .kept = kept,
                                     .y = y,
                                     .own_before = before,
                                     .own_after = after,
                                     .own_c = next_c});
    const auto gradient = lstm ? table.lstm_gradient : table.gru_gradient;
    const auto as_const = [](const Rows<T>& r) { return static_cast<Strided<const T>>(r); };
    gradient({.rows = rows,
              .hidden = hidden,
              .weights = weights.backward.data(),
              .own_after = after_gradient,
              .own_sums = own_sums,
              .own_dh = dh,
              .own_dc = dc,
              .saved = {.gates = as_const(gate_values),
                        .kept = as_const(kept),
                        .c = as_const(c),
                        .h = as_const(before),
                        .dy = dy},
              .gradients = {.product = by_product, .hidden = by_hidden, .before = previous}});
    gradient({.rows = rows,
              .hidden = hidden,
              .weights = weights.backward.data(),
              .own_after = after_gradient,
              .own_sums = {},
              .own_dh = dh_alone,
              .own_dc = {},
              .saved = {},
              .gradients = {}});
  }
  std::vector<const Rows<T>*> results() const {
    return {&gate_values, &kept,     &y,          &after,     &next_c,   &dh,
            &dc,          &own_sums, &by_product, &by_hidden, &previous, &dh_alone};
  }
  // Element j of W_hh h + bias, and element j of dh + d W_hh.
  T sum(std::int64_t row, std::int64_t j, T total) const {
    for (std::int64_t k = 0; k < hidden; ++k)
      total = std::fma(before.at(row, k), weights.plain[static_cast<std::size_t>(j * hidden + k)], total);
    return total;
  }
  T gradient_sum(std::int64_t row, std::int64_t j, T total) const {
    for (std::int64_t k = 0; k < sums; ++k)
      total = std::fma(after_gradient.at(row, k), weights.plain[static_cast<std::size_t>(k * hidden + j)], total);
    return total;
  }
};

template <class T>
void expect_same_rows(const Step<T>& got, const Step<T>& want) {
  const auto a = got.results(), b = want.results();
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(generic::same_bits(a[i]->values, b[i]->values)) << "result " << i;
}

TYPED_TEST(NativeRecurrent, BitsDoNotDependOnTheLevel) {
  using T = TypeParam;
  const kernels::NativeKernels& baseline = *kernels::native::levels()[0].kernels;
  for (const bool lstm : {true, false}) {
    for (const std::int64_t hidden : {1, 7, 16, 37, 64}) {
      for (const std::int64_t rows : {0, 1, 3, 17}) {
        SCOPED_TRACE(::testing::Message() << (lstm ? "LSTM, " : "GRU, ") << rows << " rows of " << hidden);
        Step<T> want(rows, hidden, lstm);
        want.run(baseline);
        for_levels([&](const kernels::NativeKernels& kernels) {
          Step<T> got(rows, hidden, lstm);
          got.run(kernels);
          expect_same_rows(got, want);
        });
      }
    }
  }
}

TYPED_TEST(NativeRecurrent, SumsAddOneProductAfterTheOther) {
  using T = TypeParam;
  for_levels([](const kernels::NativeKernels& kernels) {
    for (const std::int64_t hidden : {7, 37}) {
      Step<T> gru(17, hidden, false);
      gru.run(kernels);
      for (std::int64_t row = 0; row < gru.rows; ++row) {
        for (std::int64_t j = 0; j < hidden; ++j) {
          const std::int64_t n = 2 * hidden + j;  // the sum that a GRU keeps
          EXPECT_EQ(gru.kept.at(row, j), gru.sum(row, n, gru.bias[static_cast<std::size_t>(n)]));
          const T start =
              generic::random_values<T>(gru.rows * gru.dh.stride, 8)[static_cast<std::size_t>(row * gru.dh.stride + j)];
          EXPECT_EQ(gru.dh_alone.at(row, j), gru.gradient_sum(row, j, start));
        }
      }
    }
  });
}

// Units in the last place of `got` between it and a value.
template <class T>
double units(T got, double want) {
  return std::abs(static_cast<double>(got) - want) /
         static_cast<double>(std::nextafter(std::abs(got), std::numeric_limits<T>::infinity()) - std::abs(got));
}

// The gates of an LSTM without a state before it are the functions of the products of the input.
TYPED_TEST(NativeRecurrent, GatesAreAccurate) {
  using T = TypeParam;
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kQuietNaN = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> x{0, T(-0.0), kInfinity, -kInfinity, kQuietNaN, 86, -86, T(1e-20), T(-1e-6), 300, -300, 9, T(9.02)};
  for (const double range : {0.01, 1.0, 20.0, 80.0}) {
    for (const T v : generic::random_values<T>(4000, 3)) x.push_back(v * static_cast<T>(range));
  }
  const auto n = static_cast<std::int64_t>(x.size());
  for_levels([&](const kernels::NativeKernels& kernels) {
    Rows<T> product(1, 4 * n), gates(1, 4 * n), kept(1, n), y(1, n), after(1, whole(n, kLanes)),
        c(1, whole(n, kLanes), 5);
    for (std::int64_t i = 0; i < 4 * n; ++i)
      product.values[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i % n)];
    recurrent_of<T>(kernels).lstm({.rows = 1,
                                   .hidden = n,
                                   .weights = nullptr,
                                   .bias = nullptr,
                                   .product = product,
                                   .gates = gates,
                                   .kept = kept,
                                   .y = y,
                                   .own_before = {},
                                   .own_after = after,
                                   .own_c = c});
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(x[static_cast<std::size_t>(i)]);
      const T logistic = gates.at(0, i), tangent = gates.at(0, 2 * n + i);
      if (std::isnan(v)) {
        EXPECT_TRUE(std::isnan(logistic) && std::isnan(tangent));
        continue;
      }
      if (std::is_same_v<T, double> || v > -87) {
        EXPECT_LE(units(logistic, 1 / (1 + std::exp(-v))), 3) << v;
      } else {
        EXPECT_EQ(logistic, T(0)) << v;
      }
      EXPECT_LE(units(tangent, std::tanh(v)), 3) << v;
      EXPECT_EQ(std::signbit(tangent), std::signbit(v)) << v;
    }
  });
}

}  // namespace
}  // namespace lockstep::native
