// Applies the options of fine-tuning to a model before it is compiled, and to the weights that it begins with.
#pragma once

#include "lockstep/nn/module.h"
#include "lockstep/plan/trace.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

// Freezes the parameters that --freeze names, and the statistics of batch norms whose parameters are all frozen. Checks
// that each pattern of --freeze and --lr-scale matches parameters; throws Error, with the names that were probably
// meant, if one matches none. No communication.
void apply_tuning(const Options& options, const nn::Module& module);

// Loads the file of --weights, with --replace-head all but the last layer, and logs what was taken and what not.
// Collective; throws AgreedError if it does not fit.
void load_weights(const RunFacts& facts, const nn::Module& module, const plan::ModelFunction& model, Trainer& trainer);

}  // namespace lockstep::train
