// Convolutions and reorders as the registry offers them for f32, against the f64 generic kernels. With oneDNN these are
// its kernels; without it the same must hold of the generic ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/reorder.h"

namespace lockstep {
namespace {

Tensor random_tensor(const Shape& shape, std::uint64_t key) {
  Tensor t(shape, DType::F32);
  RandomStream random(7, key);
  for (float& v : t.data<float>()) v = static_cast<float>(random.uniform(-1, 1));
  return t.to(DType::F64);
}

Tensor absolute(const Tensor& t) {
  Tensor result = t.clone();
  for (double& v : result.data<double>()) v = std::abs(v);
  return result;
}

struct Result {
  kernels::KernelOffer offer;
  Tensor value;  // logical order, f64
};

// Memory of a value in a layout, at an address of choice.
struct Placed {
  Placed(const Shape& s, const Layout& l, std::size_t shift) : shape(s), layout(l), offset(shift) {
    elements = static_cast<std::size_t>(layout.storage_elements(shape));
    buffer = allocate_aligned(elements * 8 + shift + 64);
  }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(buffer.get() + offset);
  }
  Shape shape;
  Layout layout;
  std::size_t offset, elements = 0;
  AlignedBuffer buffer;
};

// Where a value has padding must be 0; destroys nothing.
template <class T>
void expect_zero_padding(Placed& p) {
  Tensor ones(p.shape, dtype_of<T>);
  for (T& v : ones.data<T>()) v = T(1);
  Placed mask(p.shape, p.layout, 0);
  reorder(p.shape, dtype_of<T>, {}, ones.raw(), p.layout, mask.data<T>());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < p.elements; ++i) wrong += mask.data<T>()[i] == T(0) && p.data<T>()[i] != T(0) ? 1 : 0;
  EXPECT_EQ(wrong, 0u) << "padding of " << p.shape.str() << " in " << p.layout.str();
}

// Runs one node as a plan would: inputs in the layouts that the kernel asks for, its outputs poisoned before.
template <class T>
Result run(const Op& op, const std::vector<Tensor>& inputs, std::vector<Layout> offered = {}, std::size_t shift = 0) {
  constexpr DType dtype = dtype_of<T>;
  std::vector<Type> types;
  for (const Tensor& t : inputs) types.push_back({t.shape(), dtype});
  const Type out = op.infer("test", types)[0];
  offered.resize(inputs.size());
  Result result{kernels::kernel_registry().offer({&op, types, {out}}, offered), Tensor(out.shape, dtype)};
  EXPECT_EQ(result.offer.implementation.find("ref"), std::string::npos) << result.offer.implementation;
  const auto kernel = result.offer.build();
  std::vector<Placed> placed;
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    placed.emplace_back(inputs[i].shape(), result.offer.inputs[i], shift);
    const Tensor converted = inputs[i].to(dtype);
    reorder(inputs[i].shape(), dtype, {}, converted.raw(), result.offer.inputs[i], placed[i].data<T>());
    pointers.push_back(placed[i].data<T>());
  }
  Placed made(out.shape, result.offer.outputs[0], shift);
  std::fill_n(made.data<T>(), made.elements, std::numeric_limits<T>::quiet_NaN());
  void* const target = made.data<T>();
  const std::size_t scratch = kernel->workspace_bytes();
  const AlignedBuffer workspace = allocate_aligned(scratch + kAlignment);
  std::fill_n(workspace.get() + scratch, kAlignment, std::byte{0xa5});
  kernel->run({pointers.data(), &target, workspace.get()});
  EXPECT_EQ(std::count(workspace.get() + scratch, workspace.get() + scratch + kAlignment, std::byte{0xa5}), kAlignment)
      << "wrote behind its workspace";
  expect_zero_padding<T>(made);
  for (Placed& p : placed) expect_zero_padding<T>(p);
  reorder(out.shape, dtype, result.offer.outputs[0], made.data<T>(), {}, result.value.raw());
  result.value = result.value.to(DType::F64);
  return result;
}

// The rounding bound of a sum of n products in f32 in any order: |error| <= n u / (1 - n u) sum |a b|, u = 2^-24
// (Higham, "Accuracy and stability of numerical algorithms", eq. 3.5), with two more roundings for a bias and fused
// steps.
void expect_close(const Op& op, const std::vector<Tensor>& inputs, std::int64_t summands) {
  const Tensor got = run<float>(op, inputs).value;
  const Tensor expected = run<double>(op, inputs).value;
  std::vector<Tensor> magnitudes;
  for (const Tensor& t : inputs) magnitudes.push_back(absolute(t));
  const Tensor scale = run<double>(op, magnitudes).value;
  const double n = static_cast<double>(summands + 2) * 0x1p-24;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.data<double>().size(); ++i) {
    const double error = std::abs(got.data<double>()[i] - expected.data<double>()[i]);
    if (!(error <= n / (1 - n) * scale.data<double>()[i])) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << "of " << got.elements() << " elements";
}

struct Case {
  std::int64_t batch, in, out, height, width, kernel;
  Conv2dOptions options;
  bool bias;
};

void expect_all_directions(const Case& c) {
  const Conv2dOptions& o = c.options;
  SCOPED_TRACE(formatted("{}x{}x{}x{} -> {} kernel {} stride {} padding {} dilation {} groups {}", c.batch, c.in,
                         c.height, c.width, c.out, c.kernel, o.stride_h, o.padding_h, o.dilation_h, o.groups));
  const ConvolutionOp forward(o);
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor({c.batch, c.in, c.height, c.width}, 1));
  inputs.push_back(random_tensor({c.out, c.in / o.groups, c.kernel, c.kernel}, 2));
  if (c.bias) inputs.push_back(random_tensor({c.out}, 3));
  std::vector<Type> types;
  for (const Tensor& t : inputs) types.push_back({t.shape(), DType::F32});
  const Shape y = forward.infer("test", types)[0].shape;
  const std::int64_t window = c.kernel * c.kernel;
  expect_close(forward, inputs, c.in / o.groups * window);

  std::vector<Tensor> data_inputs, weight_inputs;
  data_inputs.push_back(random_tensor(y, 4));
  data_inputs.push_back(inputs[1].clone());
  expect_close(ConvolutionBackwardDataOp(o, inputs[0].shape()), data_inputs, c.out / o.groups * window);
  weight_inputs.push_back(inputs[0].clone());
  weight_inputs.push_back(data_inputs[0].clone());
  expect_close(ConvolutionBackwardWeightsOp(o, inputs[1].shape(), false), weight_inputs, y[0] * y[2] * y[3]);
}

TEST(OneDnnConv2d, EveryDirectionAgreesWithTheReference) {
  std::int64_t count = 0;
  for (const std::int64_t in : {1, 3, 5, 16, 17, 32}) {
    for (const std::int64_t out : {1, 16, 17, 32}) {
      for (const std::int64_t kernel : {1, 3, 5, 7}) {
        for (const std::int64_t stride : {1, 2}) {
          ++count;
          const std::int64_t padding = count % 3 == 0 ? 0 : kernel / 2;
          expect_all_directions(
              {.batch = count % 2 == 0 ? 1 : 5,
               .in = in,
               .out = out,
               .height = 9,
               .width = 11,
               .kernel = kernel,
               .options = {.stride_h = stride, .stride_w = stride, .padding_h = padding, .padding_w = padding},
               .bias = count % 5 < 2});
        }
      }
    }
  }
}

TEST(OneDnnConv2d, DilatedAndUnevenOptions) {
  for (const std::int64_t channels : {3, 16, 17}) {
    expect_all_directions({.batch = 2,
                           .in = channels,
                           .out = 16,
                           .height = 13,
                           .width = 10,
                           .kernel = 3,
                           .options = {.padding_h = 2, .padding_w = 2, .dilation_h = 2, .dilation_w = 2},
                           .bias = true});
    expect_all_directions(
        {.batch = 5,
         .in = channels,
         .out = 32,
         .height = 12,
         .width = 9,
         .kernel = 3,
         .options = {.stride_h = 2, .stride_w = 1, .padding_h = 0, .padding_w = 1, .dilation_h = 1, .dilation_w = 3},
         .bias = false});
  }
}

TEST(OneDnnConv2d, Groups) {
  struct Groups {
    std::int64_t in, out, groups;
  };
  for (const Groups g : {Groups{16, 16, 16},
                         {17, 17, 17},
                         {24, 24, 24},
                         {32, 32, 32},
                         {16, 32, 16},
                         {32, 32, 2},
                         {64, 64, 4},
                         {12, 24, 3},
                         {34, 34, 2},
                         {32, 32, 8}}) {
    for (const std::int64_t stride : {1, 2}) {
      expect_all_directions(
          {.batch = 3,
           .in = g.in,
           .out = g.out,
           .height = 8,
           .width = 7,
           .kernel = 3,
           .options = {.stride_h = stride, .stride_w = stride, .padding_h = 1, .padding_w = 1, .groups = g.groups},
           .bias = stride == 1});
    }
  }
}

TEST(OneDnnConv2d, DoesNotDependOnTheAddress) {
  const Conv2dOptions o{.padding_h = 1, .padding_w = 1};
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor({5, 17, 9, 11}, 1));
  inputs.push_back(random_tensor({5, 32, 9, 11}, 2));
  const ConvolutionBackwardWeightsOp op(o, Shape{32, 17, 3, 3}, false);
  const Tensor a = run<float>(op, inputs).value, b = run<float>(op, inputs, {}, 64).value;
  for (std::size_t i = 0; i < a.data<double>().size(); ++i) ASSERT_EQ(a.data<double>()[i], b.data<double>()[i]) << i;
}

// The same kernel again with other pointers, as when a gradient's slot changes.
TEST(OneDnnConv2d, FollowsMovedMemory) {
  const ConvolutionOp op(Conv2dOptions{.padding_h = 1, .padding_w = 1});
  const Type x{Shape{2, 16, 6, 6}, DType::F32}, w{Shape{16, 16, 3, 3}, DType::F32};
  const auto offer = kernels::kernel_registry().offer({&op, {x, w}, {x}}, std::vector<Layout>(2));
  const auto kernel = offer.build();
  const AlignedBuffer workspace = allocate_aligned(kernel->workspace_bytes());
  Placed weight(w.shape, offer.inputs[1], 0), first(x.shape, offer.inputs[0], 0), second(x.shape, offer.inputs[0], 0);
  Placed y_first(x.shape, offer.outputs[0], 0), y_second(x.shape, offer.outputs[0], 0);
  std::fill_n(weight.data<float>(), weight.elements, 1.0f);
  std::fill_n(first.data<float>(), first.elements, 1.0f);
  std::fill_n(second.data<float>(), second.elements, 2.0f);
  const auto run_on = [&](Placed& in, Placed& out) {
    const void* inputs[] = {in.data<float>(), weight.data<float>()};
    void* outputs[] = {out.data<float>()};
    kernel->run({inputs, outputs, workspace.get()});
  };
  run_on(first, y_first);
  run_on(second, y_second);
  for (std::size_t i = 0; i < y_first.elements; ++i) ASSERT_EQ(2 * y_first.data<float>()[i], y_second.data<float>()[i]);
  EXPECT_GE(y_first.data<float>()[0], 64.0f);  // a corner sees four pixels of 16 channels
}

TEST(OneDnnConv2d, AnEmptyBatchHasAKernel) {
  const Conv2dOptions o{.padding_h = 1, .padding_w = 1};
  std::vector<Tensor> inputs;
  inputs.emplace_back(Shape{0, 16, 8, 8}, DType::F64);
  inputs.emplace_back(Shape{0, 32, 8, 8}, DType::F64);
  const Tensor dw = run<float>(ConvolutionBackwardWeightsOp(o, Shape{32, 16, 3, 3}, false), inputs).value;
  for (const double v : dw.data<double>()) ASSERT_EQ(v, 0.0);
}

TEST(OneDnnConv2d, WholeBlocksOfChannelsStayBlocked) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  const Conv2dOptions o{.padding_h = 1, .padding_w = 1};
  const Type x{Shape{4, 32, 8, 8}, DType::F32}, w{Shape{32, 32, 3, 3}, DType::F32};
  const ConvolutionOp forward(o);
  const ConvolutionBackwardDataOp data(o, x.shape);
  const ConvolutionBackwardWeightsOp weights(o, w.shape, false);
  const std::vector<Layout> plain(2);
  const auto f = kernels::kernel_registry().offer({&forward, {x, w}, {x}}, plain);
  const auto d = kernels::kernel_registry().offer({&data, {x, w}, {x}}, plain);
  const auto b = kernels::kernel_registry().offer({&weights, {x, x}, {w}}, plain);
  const Layout activations = f.outputs[0];
  EXPECT_GT(activations.channel_block(x.shape), 1);
  for (const Layout& l : {f.inputs[0], d.inputs[0], d.outputs[0], b.inputs[0], b.inputs[1]})
    EXPECT_EQ(l, activations) << l.str();
  EXPECT_EQ(f.inputs[1], b.outputs[0]) << "the gradient's form should serve forward as it is";
}

TEST(OneDnnReorder, MovesEveryElementAndZeroesPadding) {
  const Layout weights_16i16o{
      .padded = {32, 32, 3, 3}, .strides = {2 * 9 * 256, 9 * 256, 3 * 256, 256}, .blocks = {{1, 16}, {0, 16}}};
  const Layout weights_16o16i{
      .padded = {32, 32, 3, 3}, .strides = {2 * 9 * 256, 9 * 256, 3 * 256, 256}, .blocks = {{0, 16}, {1, 16}}};
  const Layout weights_16o{.padded = {32, 17, 3, 3}, .strides = {17 * 9 * 16, 9 * 16, 3 * 16, 16}, .blocks = {{0, 16}}};
  const Layout permuted{.padded = {20, 17, 3, 3}, .strides = {1, 9 * 20, 3 * 20, 20}, .blocks = {}};
  const Shape shape{20, 17, 3, 3};
  const std::vector<Layout> layouts{{},
                                    weights_16i16o,
                                    weights_16o16i,
                                    weights_16o,
                                    permuted,
                                    Layout::channels_blocked(shape, 8),
                                    Layout::channels_blocked(shape, 16)};
  Tensor logical(shape, DType::F32);
  float next = 0;
  for (float& v : logical.data<float>()) v = ++next;
  const Type type{shape, DType::F32};
  for (const Layout& from : layouts) {
    Placed source(shape, from, 0);
    reorder(shape, DType::F32, {}, logical.raw(), from, source.data<float>());
    for (const Layout& to : layouts) {
      if (from == to) continue;
      const ReorderOp op(to, DType::F32);
      const auto offer = kernels::kernel_registry().offer({&op, {type}, {type}}, std::span(&from, 1));
      SCOPED_TRACE(from.str() + " -> " + to.str() + " by " + offer.implementation);
      EXPECT_EQ(offer.implementation.find("ref"), std::string::npos);
      ASSERT_EQ(offer.inputs[0], from);
      ASSERT_EQ(offer.outputs[0], to);
      const auto kernel = offer.build();
      const AlignedBuffer workspace = allocate_aligned(kernel->workspace_bytes());
      Placed target(shape, to, 0);
      std::fill_n(target.data<float>(), target.elements, std::numeric_limits<float>::quiet_NaN());
      const void* in = source.data<float>();
      void* out = target.data<float>();
      kernel->run({&in, &out, workspace.get()});
      expect_zero_padding<float>(target);
      Tensor back(shape, DType::F32);
      reorder(shape, DType::F32, to, target.data<float>(), {}, back.raw());
      for (std::size_t i = 0; i < back.data<float>().size(); ++i)
        ASSERT_EQ(back.data<float>()[i], logical.data<float>()[i]) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
