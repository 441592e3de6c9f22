#include "tests/kernels/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "lockstep/core/random.h"

namespace lockstep::sweep {
namespace {

constexpr double kUnit = 0x1p-24, kUnitBf16 = 0x1p-8;

// Memory of a value in a layout.
struct Placed {
  Placed(Type t, Layout l) : type(std::move(t)), layout(std::move(l)) {
    bytes = static_cast<std::size_t>(layout.storage_elements(type.shape)) * size_of(type.dtype);
    buffer = allocate_aligned(bytes + kAlignment);
  }
  Type type;
  Layout layout;
  std::size_t bytes = 0;
  AlignedBuffer buffer;
};

void expect_zero_padding(const Placed& p) {
  Tensor ones(p.type.shape, p.type.dtype);
  if (ones.bytes() > 0) std::memset(ones.raw(), 1, ones.bytes());
  Placed mask(p.type, p.layout);
  reorder(p.type.shape, p.type.dtype, {}, ones.raw(), p.layout, mask.buffer.get());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < p.bytes; ++i)
    wrong += mask.buffer[i] == std::byte{0} && p.buffer[i] != std::byte{0} ? 1 : 0;
  EXPECT_EQ(wrong, 0U) << "bytes of padding of " << p.type.str() << " in " << p.layout.str();
}

std::vector<Tensor> magnitudes(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> result;
  for (const Tensor& t : inputs) {
    result.push_back(t.clone());
    if (t.dtype() != DType::F64) continue;
    for (double& v : result.back().data<double>()) v = std::abs(v);
  }
  return result;
}

kernels::KernelRequest request_for(const Case& c, DType dtype) {
  kernels::KernelRequest request{.op = c.op.get(), .inputs = {}, .outputs = {}};
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    DType type = c.inputs[i].dtype();
    if (is_floating(type)) type = dtype == DType::BF16 && !c.activation[i] ? DType::F32 : dtype;
    request.inputs.push_back({c.inputs[i].shape(), type});
  }
  request.outputs = c.op->infer("test", request.inputs);
  return request;
}

std::vector<Tensor> run_f64(const Case& c, const std::vector<Tensor>& inputs) {
  kernels::KernelRequest request = request_for(c, DType::F64);
  const auto offer = kernels::kernel_registry().offer(request, std::vector<Layout>(inputs.size()));
  return run_offer(request, offer, inputs).outputs;
}

// The magnitudes to which a rounding is compared, element by element.
std::vector<Tensor> scales(const Case& c, const std::vector<Tensor>& want) {
  using Scale = Tolerance::Scale;
  if (c.tolerance.scale == Scale::Magnitudes) return run_f64(c, magnitudes(c.inputs));
  std::vector<Tensor> result = magnitudes(want);
  for (Tensor& t : result) {
    if (t.dtype() != DType::F64 || t.elements() == 0) continue;
    std::ranges::fill(t.data<double>(), c.tolerance.scale == Scale::One ? 1.0 : std::ranges::max(t.data<double>()));
  }
  return result;
}

// Number of elements beyond the tolerance.
void compare(const Tensor& got, const Tensor& want, const Tensor& scale, double roundings, bool narrow) {
  if (got.dtype() != DType::F64) {
    ASSERT_EQ(got.bytes(), want.bytes());
    EXPECT_TRUE(got.bytes() == 0 || std::memcmp(got.raw(), want.raw(), got.bytes()) == 0) << "integers differ";
    return;
  }
  std::size_t wrong = 0;
  double worst = 0;
  for (std::size_t i = 0; i < got.data<double>().size(); ++i) {
    const double value = want.data<double>()[i], error = std::abs(got.data<double>()[i] - value);
    const double allowed = roundings * kUnit * scale.data<double>()[i];
    const double bound = allowed + (narrow ? kUnitBf16 * (std::abs(value) + allowed) : 0) + 1e-38;
    if (!(error <= bound)) ++wrong;
    worst = std::max(worst, error / bound);
  }
  EXPECT_EQ(wrong, 0U) << "of " << got.elements() << " elements; the worst is " << worst << " of its bound";
}

}  // namespace

Tensor random_values(const Shape& shape, std::uint64_t key) {
  Tensor t(shape, DType::F32);
  RandomStream random(11, key);
  for (float& v : t.data<float>()) v = static_cast<float>(BFloat16(static_cast<float>(random.uniform(-1, 1))));
  return t.to(DType::F64);
}

Made run_offer(const kernels::KernelRequest& request, const kernels::KernelOffer& offer,
               const std::vector<Tensor>& inputs) {
  const auto kernel = offer.build();
  std::vector<Placed> in, out;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Type type = request.inputs[i];
    if (!offer.input_dtypes.empty()) type.dtype = offer.input_dtypes[i];
    const Tensor converted = is_floating(type.dtype) ? inputs[i].to(DType::F32) : inputs[i].clone();
    in.emplace_back(type, offer.inputs[i]);
    if (type.dtype == DType::F64) {
      reorder(type.shape, DType::F64, {}, inputs[i].raw(), offer.inputs[i], in[i].buffer.get());
    } else {
      Reorder(type.shape, converted.dtype(), {}, type.dtype, offer.inputs[i])(converted.raw(), in[i].buffer.get());
    }
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    out.emplace_back(request.outputs[i], offer.outputs[i]);
    std::memset(out[i].buffer.get(), 0xff, out[i].bytes + kAlignment);  // NaN
  }
  for (const Placed& p : in) sources.push_back(p.buffer.get());
  for (const Placed& p : out) targets.push_back(p.buffer.get());
  const std::size_t scratch = kernel->workspace_bytes();
  const AlignedBuffer workspace = allocate_aligned(scratch + kAlignment);
  std::memset(workspace.get(), 0xff, scratch);  // NaN, as a plan hands out memory that other kernels have used
  std::fill_n(workspace.get() + scratch, kAlignment, std::byte{0xa5});
  kernel->run({sources.data(), targets.data(), workspace.get()});
  EXPECT_EQ(std::count(workspace.get() + scratch, workspace.get() + scratch + kAlignment, std::byte{0xa5}), kAlignment)
      << "wrote behind its workspace";
  Made made{offer.implementation, {}};
  for (const Placed& p : out) {
    expect_zero_padding(p);
    EXPECT_EQ(std::count(p.buffer.get() + p.bytes, p.buffer.get() + p.bytes + kAlignment, std::byte{0xff}), kAlignment)
        << "wrote behind its output";
    const DType wide = p.type.dtype == DType::BF16 ? DType::F32 : p.type.dtype;
    Tensor logical(p.type.shape, wide);
    Reorder(p.type.shape, p.type.dtype, p.layout, wide, {})(p.buffer.get(), logical.raw());
    made.outputs.push_back(is_floating(wide) ? logical.to(DType::F64) : std::move(logical));
  }
  return made;
}

std::vector<Tensor> reference(const Case& c) { return run_f64(c, c.inputs); }

std::vector<std::string> expect_offers_agree(const Case& c, const std::function<double(const std::string&)>& wide) {
  std::vector<std::string> seen;
  const std::vector<Tensor> want = reference(c);
  const std::vector<Tensor> scale = scales(c, want);
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const kernels::KernelRequest request = request_for(c, dtype);
    for (const std::int64_t block : {1, 8, 16}) {
      std::vector<Layout> offered;
      for (const Tensor& t : c.inputs)
        offered.push_back(t.shape().rank() == 4 ? Layout::channels_blocked(t.shape(), block) : Layout{});
      std::set<std::string> names;
      for (const kernels::KernelOffer& offer : kernels::kernel_registry().offers(request, offered)) {
        SCOPED_TRACE(c.name + " in " + std::string(name_of(dtype)) + " by " + offer.implementation +
                     ", offered blocks of " + std::to_string(block));
        EXPECT_EQ(offer.implementation.find("ref"), std::string::npos);
        EXPECT_TRUE(names.insert(offer.implementation).second) << "choices are remembered by name";
        const Made made = run_offer(request, offer, c.inputs);
        for (std::size_t i = 0; i < want.size(); ++i) {
          compare(made.outputs[i], want[i], scale[i], c.tolerance.roundings * wide(offer.implementation),
                  request.outputs[i].dtype == DType::BF16);
        }
        seen.push_back(offer.implementation);
      }
    }
  }
  return seen;
}

}  // namespace lockstep::sweep
