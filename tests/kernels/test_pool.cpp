#include <algorithm>
#include <array>

#include "lockstep/kernels/generic/pool.h"
#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

template <class T>
class Pool : public ::testing::Test {};
TYPED_TEST_SUITE(Pool, FloatTypes);

struct Sizes {
  std::int64_t h, w;
};
struct Window {
  std::array<std::int64_t, 4> x;
  Sizes kernel, stride, padding = {0, 0}, dilation = {1, 1};
};

std::vector<Window> windows(bool dilated) {
  std::vector<Window> all{{.x = {2, 3, 6, 8}, .kernel = {2, 2}, .stride = {2, 2}},
                          {.x = {1, 5, 7, 10}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
                          {.x = {2, 1, 5, 9}, .kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 0}},
                          {.x = {1, 17, 1, 1}, .kernel = {1, 1}, .stride = {1, 1}},
                          {.x = {1, 2, 2, 2}, .kernel = {2, 2}, .stride = {3, 3}, .padding = {1, 1}},
                          {.x = {0, 3, 6, 6}, .kernel = {2, 2}, .stride = {2, 2}}};
  if (dilated) {
    all.push_back({.x = {2, 3, 9, 8}, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .dilation = {2, 3}});
  }
  return all;
}

kernels::PoolGeometry geometry(const Window& window) {
  return {.batch = window.x[0],
          .channels = window.x[1],
          .in_h = window.x[2],
          .in_w = window.x[3],
          .kernel_h = window.kernel.h,
          .kernel_w = window.kernel.w,
          .stride_h = window.stride.h,
          .stride_w = window.stride.w,
          .padding_h = window.padding.h,
          .padding_w = window.padding.w,
          .dilation_h = window.dilation.h,
          .dilation_w = window.dilation.w};
}

// Every window with both ways to round sizes and to count padding.
std::vector<kernels::PoolGeometry> geometries(bool dilated) {
  std::vector<kernels::PoolGeometry> all;
  for (const Window& window : windows(dilated)) {
    for (const bool ceil : {false, true}) {
      for (const bool include : {false, true}) {
        kernels::PoolGeometry& g = all.emplace_back(geometry(window));
        g.ceil_mode = ceil;
        g.count_include_pad = include;
      }
    }
  }
  return all;
}

std::int64_t in_size(const kernels::PoolGeometry& g) { return g.batch * g.channels * g.in_h * g.in_w; }
std::int64_t out_size(const kernels::PoolGeometry& g) { return g.batch * g.channels * g.out_h() * g.out_w(); }

// Calls window(y index, the x indices inside it, the number of its places inside image and padding) for each output.
template <class Body>
void for_windows(const kernels::PoolGeometry& g, const Body& window) {
  std::size_t y = 0;
  for (std::int64_t p = 0; p < g.batch * g.channels; ++p)
    for (std::int64_t r = 0; r < g.out_h(); ++r)
      for (std::int64_t c = 0; c < g.out_w(); ++c) {
        std::vector<std::int64_t> inside;
        int places = 0;
        for (std::int64_t kh = 0; kh < g.kernel_h; ++kh)
          for (std::int64_t kw = 0; kw < g.kernel_w; ++kw) {
            const std::int64_t h = r * g.stride_h - g.padding_h + kh * g.dilation_h;
            const std::int64_t w = c * g.stride_w - g.padding_w + kw * g.dilation_w;
            places += h < g.in_h + g.padding_h && w < g.in_w + g.padding_w;
            if (h >= 0 && h < g.in_h && w >= 0 && w < g.in_w) inside.push_back((p * g.in_h + h) * g.in_w + w);
          }
        window(y++, inside, places);
      }
}

TYPED_TEST(Pool, MaxMatchesDefinition) {
  using T = TypeParam;
  for (const kernels::PoolGeometry& g : geometries(true)) {
    auto x = random_values<T>(in_size(g), 1);
    for (T& v : x) v = std::round(v * T(3));  // many ties
    const auto dy = random_values<T>(out_size(g), 2);
    auto y = unwritten<T>(out_size(g)), dx = unwritten<T>(in_size(g));
    std::vector<std::uint8_t> index(y.size(), 77);
    std::vector<std::int32_t> wide_index(y.size(), -7);
    kernels::generic::max_pool_forward(g, x.data(), y.data(), wide_index.data());
    kernels::generic::max_pool_forward(g, x.data(), y.data(), index.data());
    kernels::generic::max_pool_backward(g, dy.data(), index.data(), dx.data());
    std::vector<Exact> want_dx(x.size());
    for_windows(g, [&](std::size_t o, const std::vector<std::int64_t>& inside, int) {
      ASSERT_FALSE(inside.empty());
      const auto value = [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
      const std::int64_t best = *std::max_element(inside.begin(), inside.end(),
                                                  [&](std::int64_t a, std::int64_t b) { return value(a) < value(b); });
      ASSERT_EQ(y[o], value(best));
      const std::int64_t out = static_cast<std::int64_t>(o) % (g.out_h() * g.out_w()), in = best % (g.in_h * g.in_w);
      const std::int64_t h = in / g.in_w - (out / g.out_w() * g.stride_h - g.padding_h);
      const std::int64_t w = in % g.in_w - (out % g.out_w() * g.stride_w - g.padding_w);
      ASSERT_EQ(index[o], h / g.dilation_h * g.kernel_w + w / g.dilation_w);
      ASSERT_EQ(wide_index[o], index[o]);
      want_dx[static_cast<std::size_t>(best)].add(static_cast<double>(dy[o]));
    });
    expect_close(dx, want_dx, static_cast<double>(g.kernel_h * g.kernel_w));
  }
}

TYPED_TEST(Pool, MaxKeepsNanAndMinusInfinity) {
  using T = TypeParam;
  const kernels::PoolGeometry g{.batch = 1, .channels = 1, .in_h = 1, .in_w = 4, .kernel_w = 2, .stride_w = 2};
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{-inf, -inf, nan, 3};
  std::vector<T> y(2);
  std::vector<std::uint8_t> index(2);
  kernels::generic::max_pool_forward(g, x.data(), y.data(), index.data());
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(index[0], 0);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(index[1], 0);
}

TYPED_TEST(Pool, AverageMatchesDefinition) {
  using T = TypeParam;
  for (const kernels::PoolGeometry& g : geometries(false)) {
    const auto x = random_values<T>(in_size(g), 3), dy = random_values<T>(out_size(g), 4);
    auto y = unwritten<T>(out_size(g)), dx = unwritten<T>(in_size(g));
    kernels::generic::average_pool_forward<T>(g, x.data(), y.data());
    kernels::generic::average_pool_backward<T>(g, dy.data(), dx.data());
    std::vector<Exact> want_y(y.size()), want_dx(x.size());
    for_windows(g, [&](std::size_t o, const std::vector<std::int64_t>& inside, int places) {
      const double divisor = g.count_include_pad ? places : static_cast<double>(inside.size());
      for (const std::int64_t i : inside) {
        want_y[o].add(static_cast<double>(x[static_cast<std::size_t>(i)]) / divisor);
        want_dx[static_cast<std::size_t>(i)].add(static_cast<double>(dy[o]) / divisor);
      }
    });
    expect_close(y, want_y, static_cast<double>(g.kernel_h * g.kernel_w + 1));
    expect_close(dx, want_dx, static_cast<double>(g.kernel_h * g.kernel_w + 1));
  }
}

TYPED_TEST(Pool, GlobalAverageMatchesDefinition) {
  using T = TypeParam;
  struct Case {
    std::int64_t planes, spatial;
  };
  for (const auto [planes, spatial] : {Case{3, 49}, Case{17, 1}, Case{2, 4099}, Case{0, 5}}) {
    const auto x = random_values<T>(planes * spatial, 5), dy = random_values<T>(planes, 6);
    auto y = unwritten<T>(planes), dx = unwritten<T>(planes * spatial);
    kernels::generic::global_average_pool_forward<T>(planes, spatial, x.data(), y.data());
    kernels::generic::global_average_pool_backward<T>(planes, spatial, dy.data(), dx.data());
    std::vector<Exact> want_y(y.size()), want_dx(dx.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t p = i / static_cast<std::size_t>(spatial);
      want_y[p].add(static_cast<double>(x[i]) / static_cast<double>(spatial));
      want_dx[i].add(static_cast<double>(dy[p]) / static_cast<double>(spatial));
    }
    expect_close(y, want_y, sizeof(T) == 4 ? 2 : static_cast<double>(spatial) + 2);  // f32 is summed in double
    expect_close(dx, want_dx, 1);
  }
}

// out_h as torch.nn.functional.max_pool2d gives it.
TEST(PoolGeometry, CeilModeRoundsAsPyTorch) {
  const auto out = [](std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t pad, bool ceil) {
    return kernels::PoolGeometry{.in_h = in, .kernel_h = k, .stride_h = stride, .padding_h = pad, .ceil_mode = ceil}
        .out_h();
  };
  EXPECT_EQ(out(5, 2, 2, 0, false), 2);
  EXPECT_EQ(out(5, 2, 2, 0, true), 3);
  EXPECT_EQ(out(112, 3, 2, 1, false), 56);
  EXPECT_EQ(out(6, 3, 2, 1, true), 4);
  EXPECT_EQ(out(2, 2, 3, 1, true), 1);  // a second window would begin past the image
  EXPECT_EQ(out(2, 3, 1, 0, true), 0);
  EXPECT_EQ(out(2, 3, 2, 0, true), 1);  // the only window hangs over the edge
}

TYPED_TEST(Pool, DoesNotDependOnThreads) {
  using T = TypeParam;
  const kernels::PoolGeometry g{.batch = 4,
                                .channels = 17,
                                .in_h = 33,
                                .in_w = 31,
                                .kernel_h = 3,
                                .kernel_w = 3,
                                .stride_h = 2,
                                .stride_w = 2,
                                .padding_h = 1,
                                .padding_w = 1};
  const auto x = random_values<T>(in_size(g), 7), dy = random_values<T>(out_size(g), 8);
  expect_thread_invariant([&] {
    std::vector<T> all, y(static_cast<std::size_t>(out_size(g))), dx(x.size());
    std::vector<std::uint8_t> index(y.size());
    const auto keep = [&](const std::vector<T>& v) { all.insert(all.end(), v.begin(), v.end()); };
    kernels::generic::max_pool_forward(g, x.data(), y.data(), index.data());
    kernels::generic::max_pool_backward(g, dy.data(), index.data(), dx.data());
    keep(y), keep(dx);
    kernels::generic::average_pool_forward<T>(g, x.data(), y.data());
    kernels::generic::average_pool_backward<T>(g, dy.data(), dx.data());
    keep(y), keep(dx);
    std::vector<T> means(static_cast<std::size_t>(g.batch * g.channels));
    kernels::generic::global_average_pool_forward<T>(g.batch * g.channels, g.in_h * g.in_w, x.data(), means.data());
    keep(means);
    return all;
  });
}

}  // namespace
}  // namespace lockstep::generic
