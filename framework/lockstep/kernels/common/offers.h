// Helpers that the tables of kernels share: offers by layout, and dispatch from a run-time type to an element type.
#pragma once

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
