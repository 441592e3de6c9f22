// One entry of a state dict or checkpoint: a tensor and its name. Slashes in a name become HDF5 groups, dots stay:
// "model/layer1.0.conv1.weight".
#pragma once

#include <string>

#include "lockstep/core/tensor.h"

namespace lockstep::io {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace lockstep::io
