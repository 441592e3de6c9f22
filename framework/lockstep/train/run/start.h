// Makes the parts of a session; the functions stand in the order of their calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/heartbeat.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/monitor/watchdog.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/run/checkpoints.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

// Opens the files of the run in its output folder. Collective.
std::unique_ptr<RunFiles> open_files(const RunFacts& facts);
// Starts the watchdog; returns null with --stall-timeout 0. Collective.
std::unique_ptr<Watchdog> watch_ranks(const RunFacts& facts, RunFiles& files, Heartbeat& heartbeat);
// Makes the trainer. Collective.
std::unique_ptr<Trainer> make_trainer(const RunFacts& facts, const nn::Module& module, const plan::ModelFunction& model,
                                      Heartbeat& heartbeat, const CallbackList& callbacks);
// Loads the file of --weights, but for the tensors of the model that `keep` names (a new head), and logs the names of
// new tensors, and of tensors of the file that were left out. Collective; throws AgreedError if the other tensors do
// not fit.
void load_weights(const RunFacts& facts, Trainer& trainer, const std::vector<std::string>& keep = {});
// On rank 0, prepares the output folder: first checks everything that can prevent the run, then changes files of an
// earlier run, so that a failed start leaves those files unchanged. `checkpoint_bytes`: memory for a checkpoint; 0:
// none is written. Returns the file of --trace.
io::FileDescriptor take_output(const RunFacts& facts, RunFiles& files, Checkpoints& checkpoints,
                               std::size_t checkpoint_bytes, std::optional<std::int64_t> resumed_step);

}  // namespace lockstep::train
