// The options of the update of weights that hold for all steps.
#pragma once

#include <vector>

#include "lockstep/optim/groups.h"

namespace lockstep::parallel {

struct UpdaterOptions {
  double weight_decay = 0;
  bool decay_biases_and_norms = true;
  std::vector<optim::ParameterGroup> groups = {};
};

}  // namespace lockstep::parallel
