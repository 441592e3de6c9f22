// Evaluates the model on all evaluation sets of a run, and checks a run that only uses its weights. Collective.
#pragma once

#include <map>
#include <string>

#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

struct Evaluation {
  Totals totals{};                       // of the evaluation set
  std::map<std::string, Totals> more{};  // of further sets, by name, up to the first that was not evaluated whole
  double seconds = 0;
};

// Tells `callbacks` the begin and the progress. Throws Error if the run has no evaluation set; else as
// Trainer::evaluate().
Evaluation evaluate_sets(const RunParts& run, const CallbackList& callbacks, bool makes_up);

// Throws Error if a run with --evaluate-only or --predict has no samples for it.
void check_use(const RunParts& run);

}  // namespace lockstep::train
