// How a session makes its parts, in the order of their calls.
#pragma once

#include <memory>
#include <optional>

#include "lockstep/core/heartbeat.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/monitor/watchdog.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/run/checkpoints.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

// Null with --stall-timeout 0. Collective.
std::unique_ptr<Watchdog> watch_ranks(const RunFacts& facts, RunFiles& files, Heartbeat& heartbeat);
// Collective.
std::unique_ptr<Trainer> make_trainer(const RunFacts& facts, const nn::Module& module, const plan::ModelFunction& model,
                                      Heartbeat& heartbeat, const CallbackList& callbacks);
// The file of --weights. Collective; throws AgreedError where it does not fit.
void load_weights(const RunFacts& facts, Trainer& trainer);
// On rank 0. What can hinder the run comes before what changes files of an earlier one: a start that is refused leaves
// that whole. `checkpoint_bytes` is the memory that a checkpoint takes, 0 where none is written. Returns the file of
// --trace.
io::FileDescriptor take_output(const RunFacts& facts, RunFiles& files, Checkpoints& checkpoints,
                               std::size_t checkpoint_bytes, std::optional<std::int64_t> resumed_step);

}  // namespace lockstep::train
