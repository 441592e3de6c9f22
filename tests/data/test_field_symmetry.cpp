// Symmetries of physical fields: operators of vector analysis must commute with them, which tells signs and places.
#include <cmath>
#include <map>
#include <set>

#include "lockstep/data/augment/field_symmetry.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

using Grid = std::vector<double>;

// Applies the transform to fields of f64.
std::vector<Grid> apply(const FieldSymmetry& transform, const std::vector<Field>& fields,
                        const std::vector<Grid>& values, const SampleKey& key) {
  EXPECT_EQ(transform.fields(fields), fields);
  std::vector<Grid> result = values;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    in.push_back(reinterpret_cast<const std::byte*>(values[i].data()));
    out.push_back(reinterpret_cast<std::byte*>(result[i].data()));
  }
  transform.apply(key, fields, in, out);
  return result;
}

Grid noisy_grid(std::int64_t count, std::uint64_t seed) {
  RandomStream random(seed, 3);
  Grid grid(static_cast<std::size_t>(count));
  for (double& v : grid) v = random.uniform(-1, 1);
  return grid;
}

// On a periodic grid of n points along each axis: central differences.
struct Calculus {
  std::int64_t n = 4;
  int dimensions = 2;

  std::int64_t points() const { return dimensions == 2 ? n * n : n * n * n; }
  double at(const Grid& grid, std::int64_t channel, std::int64_t point) const {
    return grid[static_cast<std::size_t>(channel * points() + point)];
  }
  std::int64_t neighbour(std::int64_t point, int axis, std::int64_t step) const {
    std::int64_t stride = 1;
    for (int a = dimensions - 1; a > axis; --a) stride *= n;
    const std::int64_t along = point / stride % n;
    return point + ((along + step + n) % n - along) * stride;
  }
  double derivative(const Grid& grid, std::int64_t channel, int axis, std::int64_t point) const {
    return at(grid, channel, neighbour(point, axis, 1)) - at(grid, channel, neighbour(point, axis, -1));
  }
};

// Pressure is a scalar, its gradient a vector, the vector's divergence a scalar, its curl a pseudoscalar. Channels of
// the velocity are (along axis 1, along axis 0), as (u, v) on a grid (y, x).
TEST(FieldSymmetry, CommutesWithGradientDivergenceAndCurlInTwoDimensions) {
  const Calculus c{.n = 5, .dimensions = 2};
  const std::vector<Field> fields{{"p", {1, 5, 5}, DType::F64},
                                  {"grad", {2, 5, 5}, DType::F64},
                                  {"u", {2, 5, 5}, DType::F64},
                                  {"div_curl", {2, 5, 5}, DType::F64}};
  const auto derived = [&](const Grid& p, const Grid& u) {
    Grid grad(50), both(50);
    for (std::size_t i = 0; i < 25; ++i) {
      const auto point = static_cast<std::int64_t>(i);
      grad[i] = c.derivative(p, 0, 1, point);
      grad[25 + i] = c.derivative(p, 0, 0, point);
      both[i] = c.derivative(u, 0, 1, point) + c.derivative(u, 1, 0, point);
      both[25 + i] = c.derivative(u, 1, 1, point) - c.derivative(u, 0, 0, point);
    }
    return std::pair{grad, both};
  };
  const FieldSymmetry transform({.fields = {{.name = "p"},
                                            {.name = "grad", .vectors = {{1, 0}}},
                                            {.name = "u", .vectors = {{1, 0}}},
                                            {.name = "div_curl", .pseudoscalars = {1}}}});
  const Grid p = noisy_grid(25, 1), u = noisy_grid(50, 2);
  const auto [grad, both] = derived(p, u);
  std::set<Grid> seen;
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto out = apply(transform, fields, {p, grad, u, both}, {.seed = 1, .epoch = 0, .index = i});
    seen.insert(out[0]);
    const auto [new_grad, new_both] = derived(out[0], out[2]);
    for (std::size_t k = 0; k < 50; ++k) {
      ASSERT_NEAR(out[1][k], new_grad[k], 1e-12);
      ASSERT_NEAR(out[3][k], new_both[k], 1e-12);
    }
  }
  EXPECT_EQ(seen.size(), 8U) << "the symmetries of a square";
}

TEST(FieldSymmetry, CommutesWithGradientAndCurlInThreeDimensions) {
  const Calculus c{.n = 3, .dimensions = 3};
  const std::vector<Field> fields{{"p", {1, 3, 3, 3}, DType::F64},
                                  {"grad", {3, 3, 3, 3}, DType::F64},
                                  {"u", {3, 3, 3, 3}, DType::F64},
                                  {"curl", {3, 3, 3, 3}, DType::F64},
                                  {"force", {3}, DType::F64}};
  const auto derived = [&](const Grid& p, const Grid& u) {
    Grid grad(81), curl(81), force(3);
    for (std::size_t a = 0; a < 3; ++a) {
      const std::size_t next = (a + 1) % 3, last = (a + 2) % 3;
      for (std::size_t i = 0; i < 27; ++i) {
        const auto point = static_cast<std::int64_t>(i);
        grad[a * 27 + i] = c.derivative(p, 0, static_cast<int>(a), point);
        curl[a * 27 + i] = c.derivative(u, static_cast<std::int64_t>(last), static_cast<int>(next), point) -
                           c.derivative(u, static_cast<std::int64_t>(next), static_cast<int>(last), point);
        force[a] += u[a * 27 + i];
      }
    }
    return std::array{grad, curl, force};
  };
  const FieldSymmetry transform({.fields = {{.name = "p"},
                                            {.name = "grad", .vectors = {{0, 1, 2}}},
                                            {.name = "u", .vectors = {{0, 1, 2}}},
                                            {.name = "curl", .pseudovectors = {{0, 1, 2}}},
                                            {.name = "force", .vectors = {{0, 1, 2}}}},
                                 .dimensions = 3});
  const Grid p = noisy_grid(27, 3), u = noisy_grid(81, 4);
  const auto values = derived(p, u);
  std::set<Grid> seen;
  for (std::int64_t i = 0; i < 600; ++i) {
    const auto out =
        apply(transform, fields, {p, values[0], u, values[1], values[2]}, {.seed = 1, .epoch = 0, .index = i});
    seen.insert(out[0]);
    const auto expected = derived(out[0], out[2]);
    for (std::size_t k = 0; k < 81; ++k) {
      ASSERT_NEAR(out[1][k], expected[0][k], 1e-12);
      ASSERT_NEAR(out[3][k], expected[1][k], 1e-12);
    }
    for (std::size_t k = 0; k < 3; ++k) ASSERT_NEAR(out[4][k], expected[2][k], 1e-12);
  }
  EXPECT_EQ(seen.size(), 48U) << "the symmetries of a cube";
}

TEST(FieldSymmetry, OptionsChooseTheGroup) {
  const auto count = [](FieldSymmetryOptions options, Shape shape) {
    const std::vector<Field> fields{{"p", shape, DType::F64}};
    options.fields = {{.name = "p"}};
    options.dimensions = shape.rank() - 1;
    const FieldSymmetry transform(options);
    const Grid p = noisy_grid(shape.elements(), 5);
    std::set<Grid> seen;
    for (std::int64_t i = 0; i < 400; ++i)
      seen.insert(apply(transform, fields, {p}, {.seed = 2, .epoch = 0, .index = i})[0]);
    return seen.size();
  };
  EXPECT_EQ(count({.rotations = false}, {1, 4, 4}), 4U);
  EXPECT_EQ(count({.flips = false}, {1, 4, 4}), 4U);
  EXPECT_EQ(count({.flips = false, .rotations = false}, {1, 4, 4}), 1U);
  EXPECT_EQ(count({}, {1, 4, 6}), 4U) << "axes of different length are not exchanged";
  EXPECT_EQ(count({.flips = false}, {1, 4, 6}), 2U);
  EXPECT_EQ(count({.flips = false}, {1, 3, 3, 3}), 24U);
  EXPECT_EQ(count({}, {1, 2, 3, 3}), 16U);
  EXPECT_EQ(count({}, {1, 9}), 2U);
  EXPECT_EQ(count({.flips = false}, {1, 9}), 1U);
}

TEST(FieldSymmetry, OtherFieldsAndF32StayWhatTheyAre) {
  const std::vector<Field> fields{{"p", {1, 2, 2}, DType::F32}, {"id", Shape{}, DType::I64}};
  const FieldSymmetry transform({.fields = {{.name = "p"}}});
  const std::vector<float> p{1, 2, 3, 4};
  const std::int64_t id = 77;
  for (std::int64_t i = 0; i < 20; ++i) {
    std::vector<float> out_p(4);
    std::int64_t out_id = 0;
    const std::byte* in[] = {reinterpret_cast<const std::byte*>(p.data()), reinterpret_cast<const std::byte*>(&id)};
    std::byte* out[] = {reinterpret_cast<std::byte*>(out_p.data()), reinterpret_cast<std::byte*>(&out_id)};
    transform.apply({.seed = 1, .epoch = 1, .index = i}, fields, in, out);
    EXPECT_EQ(out_id, 77);
    EXPECT_EQ(std::multiset<float>(out_p.begin(), out_p.end()), std::multiset<float>(p.begin(), p.end()));
    EXPECT_EQ(out_p[0] + out_p[3], 5) << "opposite corners stay opposite";
  }
}

TEST(FieldSymmetry, RefusesListsThatMakeNoSense) {
  EXPECT_THROW(FieldSymmetry({.fields = {}}), Error);
  EXPECT_THROW(FieldSymmetry({.fields = {{.name = "u"}}, .dimensions = 4}), Error);
  expect_error([] { FieldSymmetry({.fields = {{.name = "u", .vectors = {{0}}}}}); },
               {"'u'", "1 channels", "expected 2"});
  expect_error([] { FieldSymmetry({.fields = {{.name = "u", .vectors = {{0, 0}}}}}); }, {"'u'", "channel 0", "twice"});
  const FieldSymmetry transform({.fields = {{.name = "u", .vectors = {{0, 1}}}, {.name = "p"}}});
  const Field u{"u", {2, 4, 4}, DType::F32}, p{"p", {1, 4, 4}, DType::F32};
  EXPECT_NO_THROW(transform.fields({u, p}));
  expect_error([&] { transform.fields({u}); }, {"no field 'p'"});
  expect_error([&] { transform.fields({u, {"p", {1, 4, 5}, DType::F32}}); }, {"'p'", "(1, 4, 5)", "(4, 4)"});
  expect_error([&] { transform.fields({{"u", {1, 4, 4}, DType::F32}, p}); }, {"'u' has 1 channels", "channel 1"});
  expect_error([&] { transform.fields({{"u", {2, 4, 4}, DType::U8}, p}); }, {"'u' is u8"});
}

}  // namespace
}  // namespace lockstep::data
