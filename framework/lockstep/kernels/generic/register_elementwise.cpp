// Element-wise ops, fills and reorders on the generic kernels.
#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/normal_noise.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reorder.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> dropout_kernel(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<DropoutOp>();
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;
  DropoutOptions options{.samples = r.inputs[0].shape[0], .p = op.probability(), .key = op.key()};
  options.per_sample = r.inputs[0].shape.tail().elements();
  offer.build = [options, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([options](const Arguments& a) {
        DropoutOptions now = options;
        now.step = static_cast<std::uint64_t>(*a.in<std::int64_t>(1));
        now.sample_ids = a.in<std::int64_t>(2);
        dropout(now, a.in<T>(0), a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> normal_noise_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  const NoiseOptions options{.samples = r.outputs[0].shape[0],
                             .per_sample = r.outputs[0].shape.tail().elements(),
                             .key = r.as<NormalNoiseOp>().key()};
  offer.build = [options, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([options](const Arguments& a) {
        NoiseOptions now = options;
        now.step = static_cast<std::uint64_t>(*a.in<std::int64_t>(0));
        now.sample_ids = a.in<std::int64_t>(1);
        normal_noise(now, a.out<T>(0));
      });
    });
  };
  return offer;
}

std::optional<KernelOffer> expand(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [factor = r.as<ExpandOp>().factor(), n = r.outputs[0].shape.elements(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [=](const Arguments& a) { fill(n, static_cast<T>(static_cast<double>(*a.in<T>(0)) * factor), a.out<T>(0)); });
    });
  };
  return offer;
}

std::optional<KernelOffer> fill_kernel(const KernelRequest& r, std::span<const Layout>) {
  if (r.dtype() != DType::F32 && r.dtype() != DType::F64) return std::nullopt;
  KernelOffer offer = plain_offer(r);
  offer.build = [value = r.as<FillOp>().value(), n = r.outputs[0].shape.elements(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([=](const Arguments& a) { fill(n, static_cast<T>(value), a.out<T>(0)); });
    });
  };
  return offer;
}

std::optional<KernelOffer> reorder_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = plain_offer(r);
  offer.inputs[0] = offered[0];
  offer.outputs[0] = r.as<ReorderOp>().target();
  offer.build = [in = r.inputs[0], out = r.outputs[0].dtype, from = offer.inputs[0], to = offer.outputs[0]] {
    return make_kernel(
        [run = Reorder(in.shape, in.dtype, from, out, to)](const Arguments& a) { run(a.inputs[0], a.outputs[0]); });
  };
  return offer;
}

std::optional<KernelOffer> cast_kernel(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = plain_offer(r);
  offer.inputs[0] = offer.outputs[0] = offered[0];
  const std::int64_t n = offered[0].storage_elements(r.inputs[0].shape);
  const auto convert = [n]<class From, class To>(From, To) {
    return make_kernel(
        [n](const Arguments& a) { map(n, a.in<From>(0), a.out<To>(0), [](From v) { return static_cast<To>(v); }); });
  };
  offer.build = [convert, from = r.inputs[0].dtype, to = r.outputs[0].dtype] {
    if (from == DType::F64) return convert(double{}, float{});
    if (to == DType::F64) return convert(float{}, double{});
    return to == DType::BF16 ? convert(float{}, BFloat16{}) : convert(BFloat16{}, float{});
  };
  return offer;
}

// Integers as f32 or f64.
std::optional<KernelOffer> to_floating_kernel(const KernelRequest& r, std::span<const Layout>) {
  KernelOffer offer = plain_offer(r);
  offer.build = [n = r.inputs[0].shape.elements(), from = r.inputs[0].dtype, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using To = decltype(tag);
      const auto convert = [n]<class From>(From) {
        return make_kernel([n](const Arguments& a) {
          map(n, a.in<From>(0), a.out<To>(0), [](From v) { return static_cast<To>(v); });
        });
      };
      if (from == DType::U8) return convert(std::uint8_t{});
      return from == DType::I64 ? convert(std::int64_t{}) : convert(std::int32_t{});
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> elementwise_rows() {
  return {
      kernel_row<DropoutOp>("dropout", dropout_kernel),
      kernel_row<ExpandOp>("expand", expand),
      kernel_row<FillOp>("fill", fill_kernel),
      kernel_row<ReorderOp>("reorder", reorder_kernel),
      kernel_row<CastOp>("cast", cast_kernel),
      kernel_row<ToFloatingOp>("to_floating", to_floating_kernel),
      kernel_row<NormalNoiseOp>("normal_noise", normal_noise_kernel),
  };
}

}  // namespace lockstep::kernels::generic
