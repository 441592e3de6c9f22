// Initialisers of parameters. The fan of a weight is the number of inputs (Fan::In) or outputs (Fan::Out) of one
// element: for a convolution, the channels times the size of the filter; for a shape with fewer than two dimensions,
// its number of elements. Any thread may call these.
#pragma once

#include "lockstep/graph/parameter.h"

namespace lockstep::nn {

enum class Fan : std::uint8_t { In, Out };

// Fills every element with `value`.
Initializer constant(double value);
// Draws uniformly from [low, high).
Initializer uniform(double low, double high);
// Draws from the normal distribution with this mean and standard deviation.
Initializer normal(double mean, double deviation);
// He et al., "Delving deep into rectifiers" (2015), eq. 10 and 14: variance gain^2 / fan; gain sqrt(2 / (1 + slope^2)).
Initializer kaiming_normal(Fan fan = Fan::In, double slope = 0);
Initializer kaiming_uniform(Fan fan = Fan::In, double slope = 0);
// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010), eq. 16.
Initializer xavier_normal(double gain = 1);
Initializer xavier_uniform(double gain = 1);
// Draws uniformly from [-1/sqrt(fan_in), 1/sqrt(fan_in)), as PyTorch does for weights and biases with `fan_in` inputs.
Initializer torch_default(std::int64_t fan_in);

}  // namespace lockstep::nn
