// What the registrations of the generic kernels share: offers by layout, and the step from a run-time type to float or
// double.
#pragma once

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/batch_norm.h"
#include "lockstep/kernels/generic/conv2d.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/pool.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/pool2d.h"

namespace lockstep::generic {

// Calls f with a float or double tag: f32 and f64 are what the generic kernels know, anything else throws Error.
template <class F>
std::unique_ptr<Kernel> build_typed(DType dtype, F f) {
  check(dtype == DType::F32 || dtype == DType::F64, "kernel", "elements are {}, expected f32 or f64", name_of(dtype));
  return dtype == DType::F64 ? f(double{}) : f(float{});
}

inline KernelOffer plain_offer(const KernelRequest& request) {
  KernelOffer offer;
  offer.implementation = "generic";
  offer.inputs.resize(request.inputs.size());
  offer.outputs.resize(request.outputs.size());
  return offer;
}

// For element-wise kernels on values of one shape: the first offered layout that is not plain, for all of them. A
// function that does not keep zeros would spoil padding, so it takes layouts without padding only.
inline KernelOffer elementwise_offer(const KernelRequest& request, std::span<const Layout> offered,
                                     bool keeps_zeros = true) {
  KernelOffer offer = plain_offer(request);
  const auto blocked = std::ranges::find_if(offered, [](const Layout& l) { return !l.plain(); });
  if (blocked == offered.end()) return offer;
  if (!keeps_zeros && blocked->has_padding(request.outputs[0].shape)) return offer;
  std::ranges::fill(offer.inputs, *blocked);
  std::ranges::fill(offer.outputs, *blocked);
  return offer;
}

// The channel blocking in which `offered` lies, if it is one these kernels know, else 1.
inline std::int64_t known_block(const Shape& shape, const Layout& offered) {
  const std::int64_t block = offered.channel_block(shape);
  return block == 8 || block == 16 ? block : 1;
}

// An offer in which the values of x's shape keep the channel blocking that is offered for input 0.
struct ChannelOffer {
  KernelOffer offer;
  BatchNormView view;
};

inline ChannelOffer channel_offer(const KernelRequest& r, std::span<const Layout> offered) {
  const Shape& x = r.inputs[0].shape;
  ChannelOffer c{plain_offer(r),
                 {.batch = x[0], .channels = x[1], .spatial = x.elements() == 0 ? 0 : x.elements() / (x[0] * x[1])}};
  c.view.block = known_block(x, offered[0]);
  if (c.view.block == 1) return c;
  for (std::size_t i = 0; i < r.inputs.size(); ++i) {
    if (r.inputs[i].shape == x) c.offer.inputs[i] = offered[0];
  }
  for (std::size_t i = 0; i < r.outputs.size(); ++i) {
    if (r.outputs[i].shape == x) c.offer.outputs[i] = offered[0];
  }
  return c;
}

// The epilogue in place, in loops of its own.
template <class T>
void finish(const Epilogue& epilogue, std::int64_t n, const T* residual, T* y) {
  if (epilogue.residual) add(n, y, residual, y);
  if (epilogue.relu) relu_forward(n, y, y);
}

inline Conv2dGeometry conv2d_geometry(const Conv2dOptions& o, const Shape& x, const Shape& weight) {
  return {.batch = x[0],
          .in_channels = x[1],
          .in_h = x[2],
          .in_w = x[3],
          .out_channels = weight[0],
          .kernel_h = weight[2],
          .kernel_w = weight[3],
          .stride_h = o.stride_h,
          .stride_w = o.stride_w,
          .padding_h = o.padding_h,
          .padding_w = o.padding_w,
          .dilation_h = o.dilation_h,
          .dilation_w = o.dilation_w,
          .groups = o.groups};
}

inline PoolGeometry pool_geometry(const Pool2dOptions& o, const Shape& x) {
  return {.batch = x[0],
          .channels = x[1],
          .in_h = x[2],
          .in_w = x[3],
          .kernel_h = o.kernel_h,
          .kernel_w = o.kernel_w,
          .stride_h = o.stride_h,
          .stride_w = o.stride_w,
          .padding_h = o.padding_h,
          .padding_w = o.padding_w,
          .dilation_h = o.dilation_h,
          .dilation_w = o.dilation_w,
          .ceil_mode = o.ceil_mode,
          .count_include_pad = o.count_include_pad};
}

// For ops of the class T, which have this name. The generic kernels know f32 and f64; bf16 goes through f32, which the
// plan sees to.
template <class T, class Factory>
void add_generic(KernelRegistry& registry, std::string_view op, Factory factory) {
  registry.reserve(op, typeid(T));
  registry.add("generic", op,
               [factory](const KernelRequest& request, std::span<const Layout> offered) -> std::optional<KernelOffer> {
                 if (request.has_bf16()) return std::nullopt;
                 return factory(request, offered);
               });
}

void register_elementwise(KernelRegistry& registry);
void register_products(KernelRegistry& registry);
void register_images(KernelRegistry& registry);
void register_losses(KernelRegistry& registry);
void register_sync(KernelRegistry& registry);

}  // namespace lockstep::generic
