// The micro-kernels on blocks of 16 channels against sums in f64, and their bits at every level.
#include <algorithm>
#include <cmath>

#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using generic::Exact;
using generic::random_values;
using kernels::native::BlockedTable;
using kernels::native::kLanes;

struct ProductCase {
  std::int64_t rows, vectors, x_row;
  bool add = false, bias = false, addend = false, relu = false;
};

// Terms that overlap in x, as the taps of a convolution do, and lie in no order in w.
constexpr BlockedTable::Term kTerms[] = {{0, 512}, {16, 0}, {64, 256}, {7, 768}};
constexpr std::int64_t kCount = std::size(kTerms), kWeights = 1024 + 16;  // of a vector; not a multiple of a block

struct ProductArrays {
  explicit ProductArrays(const ProductCase& c)
      : y_vector((c.rows + 1) * kLanes),
        x(random_values<float>(64 + c.rows * c.x_row + kLanes, 1)),
        w(random_values<float>(c.vectors * kWeights, 2)),
        bias(random_values<float>(2 * kLanes, 3)),
        before(random_values<float>(c.vectors * y_vector, 4)),
        addend(random_values<float>(c.vectors * y_vector, 5)) {}
  std::int64_t y_vector;
  std::vector<float> x, w, bias, before, addend;
};

BlockedTable::Product product_of(const ProductCase& c, const ProductArrays& a, float* y) {
  return {.rows = c.rows,
          .vectors = c.vectors,
          .terms = kTerms,
          .count = kCount,
          .x = a.x.data(),
          .x_row = c.x_row,
          .w = a.w.data(),
          .w_vector = kWeights,
          .y = y,
          .y_row = kLanes,
          .y_vector = a.y_vector,
          .add = c.add,
          .bias = c.bias ? a.bias.data() : nullptr,
          .addend = c.addend ? a.addend.data() : nullptr,
          .relu = c.relu,
          .read = {a.x.data(), 3},
          .write = {y, c.rows}};
}

std::vector<Exact> exact_product(const ProductCase& c, const ProductArrays& a) {
  std::vector<Exact> want(a.before.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto v = static_cast<std::int64_t>(i) / a.y_vector, row = static_cast<std::int64_t>(i) % a.y_vector / kLanes,
               lane = static_cast<std::int64_t>(i) % kLanes;
    if (row == c.rows) {  // between the vectors: not touched
      want[i].add(static_cast<double>(a.before[i]));
      continue;
    }
    if (c.add) want[i].add(static_cast<double>(a.before[i]));
    for (const BlockedTable::Term& t : kTerms) {
      for (std::int64_t k = 0; k < kLanes; ++k)
        want[i].add(static_cast<double>(a.x[t.x + row * c.x_row + k]) *
                    static_cast<double>(a.w[v * kWeights + t.w + k * kLanes + lane]));
    }
    if (c.bias) want[i].add(static_cast<double>(a.bias[v * kLanes + lane]));
    if (c.addend) want[i].add(static_cast<double>(a.addend[i]));
    if (c.relu) want[i].value = std::max(want[i].value, 0.0);
  }
  return want;
}

TEST(NativeBlocked, ProductIsTheSumOfItsTerms) {
  std::vector<ProductCase> cases;
  for (std::int64_t rows = 1; rows <= 30; ++rows) {
    for (const std::int64_t vectors : {1, 2}) cases.push_back({rows, vectors, 16});
  }
  for (const std::int64_t x_row : {0, 16, 32, 48}) cases.push_back({.rows = 17, .vectors = 2, .x_row = x_row});
  for (const std::int64_t x_row : {16, 32, 80}) {
    cases.push_back({.rows = 9, .vectors = 2, .x_row = x_row, .add = true, .bias = true, .relu = true});
    cases.push_back({.rows = 15, .vectors = 1, .x_row = x_row, .bias = true, .addend = true, .relu = true});
    cases.push_back({.rows = 3, .vectors = 2, .x_row = x_row, .addend = true});
  }
  for (const ProductCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.vectors << " vectors, x_row " << c.x_row);
    const ProductArrays a(c);
    const auto want = exact_product(c, a);
    std::vector<float> first;
    for_levels([&](const kernels::NativeKernels& kernels) {
      std::vector<float> y = a.before;
      kernels.blocked.product(product_of(c, a, y.data()));
      generic::expect_close(y, want, kCount * kLanes + 4);
      if (first.empty()) first = y;
      EXPECT_TRUE(generic::same_bits(y, first)) << "bits differ from the first level's";
    });
  }
}

TEST(NativeBlocked, SumThatIsCutIntoCallsKeepsItsBits) {
  const ProductCase c{.rows = 29, .vectors = 2, .x_row = 16, .bias = true, .relu = true};
  const ProductArrays a(c);
  for_levels([&](const kernels::NativeKernels& kernels) {
    std::vector<float> whole = a.before, cut = a.before;
    kernels.blocked.product(product_of(c, a, whole.data()));
    BlockedTable::Product part = product_of({.rows = 29, .vectors = 2, .x_row = 16}, a, cut.data());
    part.count = 1;
    kernels.blocked.product(part);
    part = product_of({.rows = 10, .vectors = 2, .x_row = 16, .add = true, .bias = true, .relu = true}, a, cut.data());
    part.y_vector = a.y_vector;
    part.terms += 1;
    part.count -= 1;
    kernels.blocked.product(part);
    part.rows = 19;
    part.x += 10 * part.x_row;
    part.y += 10 * part.y_row;
    kernels.blocked.product(part);
    EXPECT_TRUE(generic::same_bits(cut, whole));
  });
}

TEST(NativeBlocked, ReluKeepsNan) {
  const ProductCase c{.rows = 2, .vectors = 2, .x_row = 16, .relu = true};
  ProductArrays a(c);
  a.x[0] = std::numeric_limits<float>::quiet_NaN();
  for_levels([&](const kernels::NativeKernels& kernels) {
    std::vector<float> y = a.before;
    kernels.blocked.product(product_of(c, a, y.data()));
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_FALSE(std::isnan(y[16]));
  });
}

struct OuterCase {
  std::int64_t positions, vectors, inputs, x_step;
  bool add;
};

TEST(NativeBlocked, OuterIsTheSumOverPositions) {
  constexpr BlockedTable::Term kRows[] = {{0, 320}, {160, 0}, {32, 640}};
  constexpr std::int64_t kSlopes = 960 + 16, kVector = 16 * kLanes + 16;
  for (const OuterCase& c : {OuterCase{1, 1, 16, 16, false},
                             {5, 2, 16, 16, true},
                             {20, 2, 16, 32, false},
                             {7, 2, 3, 3, false},
                             {6, 1, 13, 16, true}}) {
    SCOPED_TRACE(testing::Message() << c.positions << " positions, " << c.vectors << " vectors, " << c.inputs);
    const auto x = random_values<float>(160 + c.positions * c.x_step + c.inputs, 1);
    const auto dy = random_values<float>(2 * kSlopes, 2), before = random_values<float>(2 * kVector, 3);
    std::vector<Exact> want(before.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto v = static_cast<std::int64_t>(i) / kVector, k = static_cast<std::int64_t>(i) % kVector / kLanes;
      const bool touched = v < c.vectors && k < c.inputs;
      if (!touched || c.add) want[i].add(static_cast<double>(before[i]));
      for (const BlockedTable::Term& t : kRows) {
        for (std::int64_t p = 0; touched && p < c.positions; ++p)
          want[i].add(static_cast<double>(x[t.x + p * c.x_step + k]) *
                      static_cast<double>(dy[v * kSlopes + t.w + p * kLanes + static_cast<std::int64_t>(i) % kLanes]));
      }
    }
    std::vector<float> first;
    for_levels([&](const kernels::NativeKernels& kernels) {
      std::vector<float> dw = before;
      kernels.blocked.outer({.positions = c.positions,
                             .vectors = c.vectors,
                             .inputs = c.inputs,
                             .terms = kRows,
                             .count = std::size(kRows),
                             .x = x.data(),
                             .x_step = c.x_step,
                             .dy = dy.data(),
                             .dy_vector = kSlopes,
                             .dw = dw.data(),
                             .dw_vector = kVector,
                             .add = c.add,
                             .read = {x.data(), 2},
                             .write = {dw.data(), 16}});
      generic::expect_close(dw, want, static_cast<double>(3 * c.positions + 1));
      if (first.empty()) first = dw;
      EXPECT_TRUE(generic::same_bits(dw, first)) << "bits differ from the first level's";
    });
  }
}

TEST(NativeBlocked, SumAddsEveryPosition) {
  const auto x = random_values<float>(70 * kLanes, 1);
  std::vector<double> want(kLanes, 2.0);
  for (std::size_t i = 0; i < x.size(); ++i) want[i % kLanes] += static_cast<double>(x[i]);
  for_levels([&](const kernels::NativeKernels& kernels) {
    std::vector<double> sums(kLanes, 2.0);
    kernels.blocked.sum(70, x.data(), sums.data());
    for (std::size_t l = 0; l < kLanes; ++l) EXPECT_NEAR(sums[l], want[l], 1e-5);
  });
}

}  // namespace
}  // namespace lockstep::native
