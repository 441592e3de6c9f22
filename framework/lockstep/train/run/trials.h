// The options of a trial (train/options/tuning_options.h) as changes of a run before it begins.
#pragma once

#include <memory>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// With --find-lr: no evaluations, checkpoints and schedule, files in OUTPUT/find-lr, and a loss that is not finite ends
// the test and is no error. After validate().
void settle_trials(Options& options);
// With --overfit-batches: the first samples of the training set become both sets, without augmentation. Throws Error if
// there are fewer, and for options that would choose or change samples.
void limit_to_trial(RunFacts& facts);
// Makes the callback of --find-lr; the parts of the run outlive it.
std::unique_ptr<Callback> find_rate(const RunParts& run);

}  // namespace lockstep::train
