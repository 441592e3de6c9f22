// The convolution of torchvision's networks: without a bias, as a batch norm follows, and with padding that keeps the
// size at stride 1.
#pragma once

#include <cstdint>

#include "lockstep/nn/layers.h"

namespace lockstep::models {

// `fan`: the side of the weight by whose size initial values are scaled (He et al. 2015).
inline nn::Conv2dConfig same_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1,
                                  std::int64_t groups = 1, nn::Fan fan = nn::Fan::Out) {
  return {.in = in,
          .out = out,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2,
          .groups = groups,
          .bias = false,
          .weight_init = nn::kaiming_normal(fan)};
}

}  // namespace lockstep::models
