// The callbacks that every session has, made as the run's options say.
#pragma once

#include <chrono>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// `trace` is the file of --trace, on rank 0; `began` is when the session did. All parts outlive the callbacks.
void add_standard_callbacks(CallbackList& list, const RunParts& run, io::FileDescriptor trace,
                            std::chrono::steady_clock::time_point began);

}  // namespace lockstep::train
