// Helpers that the tables of kernels share: offers by layout, and dispatch from a run-time type to an element type.
#pragma once

#include <algorithm>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/kernels/common/geometry.h"
#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels {

// Calls f with a float or a double for f32 or f64, the types of the generic kernels; another type throws Error.
template <class F>
std::unique_ptr<Kernel> build_typed(DType dtype, F f) {
  check(dtype == DType::F32 || dtype == DType::F64, "kernel", "elements are {}, expected f32 or f64", name_of(dtype));
  return dtype == DType::F64 ? f(double{}) : f(float{});
}

// An offer of plain layouts; it gets the name of its set.
inline KernelOffer plain_offer(const KernelRequest& request) {
  KernelOffer offer;
  offer.inputs.resize(request.inputs.size());
  offer.outputs.resize(request.outputs.size());
  return offer;
}

// An offer of an element-wise kernel on values of one shape: all values get the first offered layout that is not plain.
// A function that does not map zero to zero would write non-zero padding, so it takes only layouts without padding.
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

}  // namespace lockstep::kernels
