// Options of fine-tuning: new heads, frozen parameters, rates and decay by parameter. The functions read the texts of
// the command line; they throw Error with the option's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/optim/groups.h"

namespace lockstep::train {

struct TuningOptions {
  bool replace_head = false;  // the last layer keeps its initial values when --weights is loaded
  std::string freeze{};       // patterns of parameters that are not trained: "conv1.*,layer1.*"
  std::string lr_scale{};     // factors on the rate of parameters: "layer4.*=0.1,fc.*=1"
  std::string no_decay{};     // patterns of parameters without weight decay: "*.pos_embedding,*.scale"
};

// Trials of a training, which help to set it up.
struct TrialOptions {
  bool find_lr = false;                       // a learning-rate range test in place of a training
  std::vector<double> lr_range = {1e-7, 10};  // its first and its last rate
  std::int64_t lr_steps = 100;                // its updates
  std::int64_t overfit_batches = 0;           // train and evaluate on this many first global batches; 0: on all data
};

// Returns the patterns of --freeze.
std::vector<std::string> freeze_patterns(const TuningOptions& options);
// Returns the groups of --lr-scale, in their order.
std::vector<optim::ParameterGroup> rate_groups(const TuningOptions& options);
// Returns the groups of --no-decay: a weight decay of 0.
std::vector<optim::ParameterGroup> decay_groups(const TuningOptions& options);

}  // namespace lockstep::train
