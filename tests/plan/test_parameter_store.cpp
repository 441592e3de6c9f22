#include "lockstep/plan/parameter_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

Parameter weight(Shape shape) { return {.shape = std::move(shape), .initialize = nn::normal(0, 1)}; }

TEST(ParameterStore, CutsBucketsWhereTheyAreFull) {
  Parameter a = weight({10}), b = weight({16}), c = weight({16}), d = weight({100}), e = weight({1});
  plan::ParameterStore store({{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}, {"e", &e}},
                             {.bucket_bytes = 128});  // 32 elements
  store.allocate({}, {&c, &a, &d, &e, &b});
  ASSERT_EQ(store.buckets().size(), 3u);
  const auto names = [&](std::size_t bucket) {
    std::string all;
    for (const plan::BucketEntry& entry : store.buckets()[bucket].entries) all += entry.name;
    return all;
  };
  EXPECT_EQ(names(0), "ca");  // in the order of the gradients, each at the beginning of a cache line
  EXPECT_EQ(names(1), "d");   // larger than a bucket: alone
  EXPECT_EQ(names(2), "eb");
  EXPECT_EQ(store.buckets()[0].entries[1].offset, 16);
  EXPECT_EQ(store.buckets()[0].elements, 32);
  EXPECT_EQ(store.buckets()[1].elements, 112);
  EXPECT_EQ(store.bucket_of(&d), 1);
  for (const auto& p : store.parameters()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.value(p.parameter)) % kAlignment, 0u) << p.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.gradient(p.parameter, 0)) % kAlignment, 0u) << p.name;
  }
}

TEST(ParameterStore, KeepsAsManySlotsAndStatesAsAreAskedFor) {
  Parameter a = weight({3, 5});
  plan::ParameterStore store({{"a", &a}}, {.gradient_slots = 3, .optimizer_states = 2});
  store.allocate({}, {&a});
  ASSERT_EQ(store.buckets()[0].gradients.size(), 3u);
  ASSERT_EQ(store.buckets()[0].states.size(), 2u);
  EXPECT_NE(store.gradient(&a, 0), store.gradient(&a, 2));
  EXPECT_EQ(store.bytes(), 16u * 4 * (1 + 3 + 2));
  const std::vector<float> ones(15, 1.0f);
  store.write_state("a", 1, Tensor::from<float>({3, 5}, ones));
  EXPECT_TRUE(std::ranges::equal(store.read_state("a", 1).data<float>(), ones));
  EXPECT_TRUE(std::ranges::all_of(store.read_state("a", 0).data<float>(), [](float v) { return v == 0; }));
}

TEST(ParameterStore, ReadsAndWritesLogicalOrderInAnyLayout) {
  Parameter a = weight({5, 7, 3, 2});
  const Layout blocked = Layout::channels_blocked(a.shape, 8);
  plan::ParameterStore store({{"a", &a}}, {.dtype = DType::F64, .optimizer_states = 1});
  store.allocate({{&a, blocked}}, {&a});
  std::vector<double> values(210);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  store.write("a", Tensor::from<double>(a.shape, values));
  EXPECT_TRUE(std::ranges::equal(store.read("a").data<double>(), values));
  EXPECT_EQ(store.layout(&a), blocked);
  const auto* stored = static_cast<const double*>(store.value(&a));
  EXPECT_EQ(std::count(stored, stored + blocked.storage_elements(a.shape), 0.0), 5 * 1 * 3 * 2) << "padding is zero";
  store.write_state("a", 0, Tensor::from<double>(a.shape, values));
  EXPECT_TRUE(std::ranges::equal(store.read_state("a", 0).data<double>(), values));
}

TEST(ParameterStore, ConvertsWhatIsWritten) {
  Parameter a = weight({3});
  plan::ParameterStore store({{"a", &a}}, {});
  store.allocate({}, {&a});
  store.write("a", Tensor::from<double>({3}, std::vector{0.1, 0.2, 0.3}));
  EXPECT_TRUE(std::ranges::equal(store.read("a").data<float>(), std::vector{0.1f, 0.2f, 0.3f}));
}

TEST(ParameterStore, DerivedCopiesFollowARefresh) {
  Parameter a = weight({2, 5, 3, 3});
  plan::ParameterStore store({{"a", &a}}, {});
  store.allocate({}, {&a});
  const Layout blocked = Layout::channels_blocked(a.shape, 8);
  const int id = store.derive(&a, blocked, DType::F32);
  EXPECT_EQ(store.derive(&a, blocked, DType::F32), id);
  EXPECT_NE(store.derive(&a, Layout::channels_blocked(a.shape, 16), DType::F32), id);
  EXPECT_NE(store.derive(&a, blocked, DType::BF16), id);
  store.make_copies();
  const auto expect_current = [&] {
    std::vector<float> logical(90);
    reorder(a.shape, DType::F32, blocked, store.derived(id), {}, logical.data());
    EXPECT_TRUE(std::ranges::equal(store.read("a").data<float>(), logical));
  };
  expect_current();
  store.write("a", Tensor::from<float>(a.shape, std::vector<float>(90, 2.5f)));
  store.refresh();
  expect_current();
}

TEST(ParameterStore, InitialValuesDependOnSeedAndNameAlone) {
  Parameter a = weight({4, 3}), b = weight({17});
  const auto values = [&](std::vector<NamedParameter> parameters, plan::ParameterStoreOptions options,
                          const std::vector<const Parameter*>& order,
                          const std::map<const Parameter*, Layout>& layouts = {}) {
    plan::ParameterStore store(std::move(parameters), options);
    store.allocate(layouts, order);
    return std::pair(store.read("a").to(DType::F64), store.read("b").to(DType::F64));
  };
  const auto same = [](const Tensor& x, const Tensor& y) {
    return std::ranges::equal(x.data<double>(), y.data<double>());
  };
  const auto [a1, b1] = values({{"a", &a}, {"b", &b}}, {.dtype = DType::F64, .seed = 5}, {&a, &b});
  const auto [a2, b2] = values({{"b", &b}, {"a", &a}}, {.dtype = DType::F64, .seed = 5, .bucket_bytes = 64}, {&b, &a},
                               {{&a, Layout::channels_blocked(a.shape, 8)}});
  EXPECT_TRUE(same(a1, a2) && same(b1, b2)) << "order, buckets and layouts do not count";
  const auto [a3, b3] = values({{"a", &a}, {"b", &b}}, {.seed = 5}, {&a, &b});
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_EQ(a3.data<double>()[i], static_cast<double>(static_cast<float>(a1.data<double>()[i])));
  const auto [a4, b4] = values({{"a", &a}, {"b", &b}}, {.dtype = DType::F64, .seed = 6}, {&a, &b});
  EXPECT_FALSE(same(a1, a4) || same(b1, b4)) << "the seed does";
  const auto [a5, b5] = values({{"a", &a}, {"c", &a}, {"b", &b}}, {.dtype = DType::F64, .seed = 5}, {&a, &b});
  EXPECT_TRUE(same(a1, a5)) << "tied weights go by their first name";
}

TEST(ParameterStore, HoldsBuffersAndIntegersOutsideTheBuckets) {
  Parameter a = weight({3}),
            mean{.shape = {3}, .initialize = nn::constant(0.5), .role = Role::Buffer, .trainable = false};
  Parameter count{
      .shape = {}, .initialize = nn::constant(4), .role = Role::Buffer, .trainable = false, .is_integer = true};
  plan::ParameterStore store({{"a", &a}, {"mean", &mean}, {"count", &count}}, {});
  store.allocate({}, {&a});
  EXPECT_TRUE(store.has_gradient(&a));
  EXPECT_FALSE(store.has_gradient(&mean));
  EXPECT_EQ(store.read("mean").data<float>()[2], 0.5f);
  EXPECT_EQ(store.read("count").data<std::int64_t>()[0], 4);
  store.write("count", Tensor::from<std::int64_t>({}, std::vector<std::int64_t>{9}));
  EXPECT_EQ(store.read("count").data<std::int64_t>()[0], 9);
  expect_error([&] { store.read_gradient("mean"); }, "[parameters] 'mean' has no gradient");
}

TEST(ParameterStore, NamesWhatDoesNotFit) {
  Parameter a = weight({3, 2}), other = weight({2});
  expect_error([&] { plan::ParameterStore({{"a", &a}, {"a", &other}}, {}); }, "two parameters are named 'a'");
  plan::ParameterStore store({{"a", &a}}, {});
  store.allocate({}, {&a});
  expect_error([&] { store.allocate({}, {&a}); }, "fixed already");
  expect_error([&] { (void)store.read("b"); }, "[parameters] the model has no parameter 'b'");
  expect_error([&] { store.write("a", Tensor({2, 3}, DType::F32)); }, "'a' has shape (2, 3), the model expects (3, 2)");
  expect_error([&] { store.write("a", Tensor({3, 2}, DType::I64)); }, "'a' is i64, the model expects f32");
  expect_error([&] { (void)store.value(&other); }, "a parameter of shape (2) is not part of the model");
}

}  // namespace
}  // namespace lockstep
