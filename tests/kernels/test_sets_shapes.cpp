// Ops that move elements, in every layout and type that reaches them: blocks of channels are kept where they can be.
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/ops/concat.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/to_floating.h"
#include "tests/kernels/sweep.h"

namespace lockstep::sweep {
namespace {

constexpr Tolerance kExact{0};

Case case_of(std::shared_ptr<const Op> op, std::vector<Tensor> inputs, Tolerance tolerance = kExact) {
  Case c{std::string(op->name()) + " " + op->attributes(), op, std::move(inputs), {}, tolerance};
  c.activation.assign(c.inputs.size(), true);
  return c;
}

Tensor integers(Shape shape, std::int64_t below) {
  Tensor t(std::move(shape), DType::I32);
  RandomStream random(5, 6);
  for (std::int32_t& v : t.data<std::int32_t>())
    v = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(below)));
  return t;
}

TEST(KernelSets, SlicesAndPadding) {
  for (const std::int64_t channels : {3, 16, 17}) {
    const Shape x{2, channels, 7, 9};
    const AxisRange batch{0, 2}, all{0, channels};
    const auto input = [&] { return list(random_values(x, 1)); };
    expect_offers_agree(
        case_of(std::make_shared<SliceOp>(std::vector<AxisRange>{{1, 1}, all, {1, 3, 2}, {8, 9, -1}}), input()));
    expect_offers_agree(
        case_of(std::make_shared<SliceOp>(std::vector<AxisRange>{batch, {1, channels - 1}, {0, 7}, {0, 9}}), input()));
    for (const double value : {0.0, 0.5}) {
      expect_offers_agree(case_of(std::make_shared<PlaceOp>(Shape{2, channels, 9, 10},
                                                            std::vector<AxisRange>{batch, all, {1, 7}, {0, 9}}, value),
                                  input()));
    }
    expect_offers_agree(case_of(std::make_shared<PlaceOp>(Shape{2, channels + 3, 7, 9},
                                                          std::vector<AxisRange>{batch, {3, channels}, {0, 7}, {0, 9}}),
                                input()));
    expect_offers_agree(case_of(std::make_shared<RollOp>(std::vector<std::int64_t>{1, 0, -3, 2}), input()));
    expect_offers_agree(case_of(std::make_shared<RollOp>(std::vector<std::int64_t>{0, 2, 0, 0}), input()));
    for (const PadMode mode : {PadMode::Reflect, PadMode::Replicate, PadMode::Circular}) {
      const std::vector<AxisPadding> padding{{0, 0}, {0, 0}, {2, 1}, {3, 3}};
      expect_offers_agree(case_of(std::make_shared<PadOp>(mode, padding), input()));
      expect_offers_agree(case_of(std::make_shared<PadGradientOp>(mode, padding, x),
                                  list(random_values({2, channels, 10, 15}, 2)), {1}));
    }
  }
}

TEST(KernelSets, JoinedAndCutValues) {
  for (const auto& [a, b] : {std::pair<std::int64_t, std::int64_t>{16, 32}, {16, 8}, {8, 8}, {3, 16}, {17, 5}}) {
    expect_offers_agree(
        case_of(std::make_shared<ConcatOp>(1), list(random_values({2, a, 5, 3}, 1), random_values({2, b, 5, 3}, 2))));
    expect_offers_agree(case_of(std::make_shared<SplitOp>(1, std::vector<std::int64_t>{a, b}),
                                list(random_values({2, a + b, 5, 3}, 1))));
    for (const int axis : {0, 2, 3}) {
      Shape x{2, a, 5, 3}, y = x;
      y[axis] = 4;
      expect_offers_agree(case_of(std::make_shared<ConcatOp>(axis), list(random_values(x, 1), random_values(y, 2))));
      x[axis] = 6;
      expect_offers_agree(
          case_of(std::make_shared<SplitOp>(axis, std::vector<std::int64_t>{1, 0, 5}), list(random_values(x, 1))));
    }
  }
}

TEST(KernelSets, AxesInAnotherOrder) {
  expect_offers_agree(
      case_of(std::make_shared<PermuteOp>(std::vector<int>{0, 2, 3, 1}), list(random_values({2, 17, 5, 7}, 1))));
  expect_offers_agree(
      case_of(std::make_shared<PermuteOp>(std::vector<int>{2, 0, 1}), list(random_values({5, 6, 7}, 1))));
}

TEST(KernelSets, Indices) {
  const Tensor index = integers({4, 6}, 5);
  expect_offers_agree(case_of(std::make_shared<IndexSelectOp>(1), list(random_values({2, 5, 3, 7}, 1), index.clone())));
  expect_offers_agree(
      case_of(std::make_shared<IndexAddOp>(1, 5), list(random_values({2, 4, 6, 3}, 1), index.clone()), {1}));
  expect_offers_agree(case_of(std::make_shared<EmbeddingOp>(2, true), list(random_values({5, 300}, 1), index.clone())));
  expect_offers_agree(
      case_of(std::make_shared<EmbeddingGradientOp>(5, 2), list(random_values({4, 6, 300}, 1), index.clone()), {1}));
  expect_offers_agree(case_of(std::make_shared<GatherOp>(1), list(random_values({4, 5}, 1), index.clone())));
  expect_offers_agree(
      case_of(std::make_shared<ScatterAddOp>(1, Shape{4, 5}), list(random_values({4, 6}, 1), index.clone()), {1}));
}

TEST(KernelSets, BlocksOfChannelsStayWhereTheyCan) {
  const Type x{Shape{2, 32, 5, 5}, DType::F32}, odd{Shape{2, 17, 5, 5}, DType::F32};
  const auto offer_of = [](const Op& op, std::vector<Type> inputs) {
    std::vector<Layout> offered;
    for (const Type& t : inputs) offered.push_back(Layout::channels_blocked(t.shape, 16));
    return kernels::kernel_registry().offer({&op, inputs, op.infer("test", inputs)}, offered);
  };
  EXPECT_FALSE(offer_of(ConcatOp(1), {x, x}).outputs[0].plain());
  EXPECT_TRUE(offer_of(ConcatOp(1), {x, odd}).outputs[0].plain());
  EXPECT_FALSE(offer_of(ConcatOp(0), {odd, odd}).outputs[0].plain());
  EXPECT_FALSE(offer_of(SplitOp(1, {16, 16}), {x}).outputs[1].plain());
  EXPECT_TRUE(offer_of(SplitOp(1, {15, 17}), {x}).inputs[0].plain());
  const PadOp pad(PadMode::Circular, {{0, 0}, {0, 0}, {1, 1}, {1, 1}});
  EXPECT_FALSE(offer_of(pad, {odd}).outputs[0].plain());
  const std::vector<AxisRange> inside{{0, 2}, {0, 17}, {1, 5}, {1, 5}};
  EXPECT_FALSE(offer_of(PlaceOp(Shape{2, 17, 7, 7}, inside), {odd}).outputs[0].plain());
  EXPECT_TRUE(offer_of(PlaceOp(Shape{2, 17, 7, 7}, inside, 1), {odd}).outputs[0].plain());
}

template <class Element>
void expect_moved(DType type) {
  Tensor x(Shape{3, 5}, type);
  for (std::size_t i = 0; i < 15; ++i) x.data<Element>()[i] = static_cast<Element>(i + 1);
  const PlaceOp op(Shape{4, 6}, {{0, 3}, {1, 5}}, 7);
  const kernels::KernelRequest request{&op, {{x.shape(), type}}, {{Shape{4, 6}, type}}};
  const auto offer = kernels::kernel_registry().offer(request, std::vector<Layout>(1));
  const Made made = run_offer(request, offer, list(x.clone()));
  for (std::size_t i = 0; i < 24; ++i) {
    const bool hit = i / 6 < 3 && i % 6 > 0;
    EXPECT_EQ(made.outputs[0].data<Element>()[i], hit ? x.data<Element>()[i / 6 * 5 + i % 6 - 1] : Element{7}) << i;
  }
}

TEST(KernelSets, IntegersMoveToo) {
  expect_moved<std::uint8_t>(DType::U8);
  expect_moved<std::int32_t>(DType::I32);
  expect_moved<std::int64_t>(DType::I64);
}

TEST(KernelSets, IntegersBecomeNumbers) {
  Tensor bytes(Shape{3}, DType::U8), wide(Shape{3}, DType::I64);
  const std::uint8_t small[] = {0, 7, 255};
  const std::int64_t large[] = {-3, 0, (std::int64_t{1} << 40) + 1};
  std::ranges::copy(small, bytes.data<std::uint8_t>().begin());
  std::ranges::copy(large, wide.data<std::int64_t>().begin());
  for (const DType type : {DType::F32, DType::F64}) {
    const ToFloatingOp op(type);
    for (const Tensor* t : {&bytes, &wide}) {
      const kernels::KernelRequest request{&op, {{t->shape(), t->dtype()}}, {{t->shape(), type}}};
      const auto offer = kernels::kernel_registry().offer(request, std::vector<Layout>(1));
      const Made made = run_offer(request, offer, list(t->clone()));
      for (std::size_t i = 0; i < 3; ++i) {
        const double value = t == &bytes ? small[i] : static_cast<double>(large[i]);
        EXPECT_EQ(made.outputs[0].data<double>()[i],
                  type == DType::F32 ? static_cast<double>(static_cast<float>(value)) : value);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::sweep
