// The loop over images that pool.cpp and average_pool.cpp share. Internal to them.
#pragma once

#include <cstdint>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/common/geometry.h"

namespace lockstep::kernels::generic {

// body(image) for every channel of the batch, or `block` channels at a time.
template <class Body>
void for_images(const PoolGeometry& g, const Body& body) {
  const std::int64_t work = (g.in_spatial() + g.out_spatial() * g.window()) * g.block;
  parallel_for(g.batch * g.blocks(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) body(p);
  });
}

}  // namespace lockstep::kernels::generic
