// Applies the options of fine-tuning to a model before it is compiled, and finds its head.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/module.h"
#include "lockstep/plan/trace.h"
#include "lockstep/train/run/run_facts.h"

namespace lockstep::train {

// Freezes the parameters that --freeze names, and the statistics of batch norms whose parameters are all frozen. Checks
// that each pattern of --freeze, --lr-scale and --no-decay matches parameters; throws Error, with the names that were
// probably meant, if one matches none. No communication.
void apply_tuning(const Options& options, const nn::Module& module);

// With --replace-head, returns the names of the tensors of the model's last layer, which keep their initial values;
// else nothing. Collective; throws AgreedError for a model without such a layer.
std::vector<std::string> head_to_replace(const RunFacts& facts, const nn::Module& module,
                                         const plan::ModelFunction& model);

}  // namespace lockstep::train
