// The options of the update of weights that hold for all steps.
#pragma once

#include <vector>

#include "lockstep/optim/groups.h"

namespace lockstep::parallel {

struct UpdaterOptions {
  double weight_decay = 0;
  bool decay_biases_and_norms = true;
  std::vector<optim::ParameterGroup> groups = {};
  double clip_value = 0;       // largest absolute value of an element of the mean gradient; 0: any
  double clip_layer_norm = 0;  // largest norm of the mean gradient of one parameter, before clip_value; 0: any
};

}  // namespace lockstep::parallel
