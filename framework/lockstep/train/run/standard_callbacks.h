// Makes the callbacks that every session has, from the run's options.
#pragma once

#include <chrono>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// Adds the callbacks to `list`. `trace` is rank 0's file of --trace; `began` is the start time of the session. All
// parts of the run must outlive the callbacks.
void add_standard_callbacks(CallbackList& list, const RunParts& run, io::FileDescriptor trace,
                            std::chrono::steady_clock::time_point began);
// The same for a run that trains nothing: those that report an evaluation.
void add_evaluation_callbacks(CallbackList& list, const RunParts& run);

}  // namespace lockstep::train
