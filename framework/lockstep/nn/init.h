// Initialisers. Fans count inputs and outputs of one element: for a convolution channels times filter size.
#pragma once

#include "lockstep/graph/parameter.h"

namespace lockstep::nn {

enum class Fan : std::uint8_t { In, Out };

Initializer constant(double value);
Initializer uniform(double low, double high);
Initializer normal(double mean, double deviation);
// He et al., "Delving deep into rectifiers" (2015), eq. 10 and 14: variance gain^2 / fan; gain sqrt(2 / (1 + slope^2)).
Initializer kaiming_normal(Fan fan = Fan::In, double slope = 0);
Initializer kaiming_uniform(Fan fan = Fan::In, double slope = 0);
// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010), eq. 16.
Initializer xavier_normal(double gain = 1);
Initializer xavier_uniform(double gain = 1);
// What PyTorch gives a weight or bias with `fan_in` inputs: uniform within 1/sqrt(fan_in).
Initializer torch_default(std::int64_t fan_in);

}  // namespace lockstep::nn
