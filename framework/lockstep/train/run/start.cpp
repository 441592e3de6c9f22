#include "lockstep/train/run/start.h"

#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/host/address_space.h"
#include "lockstep/nn/module.h"
#include "lockstep/train/monitor/stack_signal.h"
#include "lockstep/train/prepare/autotune.h"
#include "lockstep/train/report/trace_file.h"
#include "lockstep/train/run/earlier_checkpoints.h"
#include "lockstep/train/run/session_trainer.h"

namespace lockstep::train {
namespace {

// Bytes for stacks and heaps of the threads that write checkpoints: HDF5 1.10 crashes if it is initialised without
// enough memory.
constexpr std::size_t kWriterNeeds = std::size_t{32} << 20;

TrainerOptions trainer_options(const RunFacts& facts, Heartbeat& heartbeat, const CallbackList& callbacks) {
  TrainerOptions trainer = trainer_options(facts.comm, facts.options);
  trainer.sums = callbacks.sums();
  trainer.autotune_cache = autotune_cache();
  trainer.heartbeat = &heartbeat;
  return trainer;
}

// Whether a file fits the model, with a new head all but the last layer. Tensors that the model does not have may be an
// old head of another name, if the file has none of the model's.
bool fits(const checkpoint::LoadReport& report, const std::vector<std::string>& keep) {
  const bool other_head = !keep.empty() && report.skipped.empty();
  return report.missing.empty() && report.mismatched.empty() && (report.unexpected.empty() || other_head);
}

}  // namespace

std::unique_ptr<Trainer> make_trainer(const RunFacts& facts, const nn::Module& module, const plan::ModelFunction& model,
                                      Heartbeat& heartbeat, const CallbackList& callbacks) {
  return std::make_unique<Trainer>(facts.comm, module, model, facts.data.fields(),
                                   trainer_options(facts, heartbeat, callbacks));
}

std::unique_ptr<RunFiles> open_files(const RunFacts& facts) {
  const Options& o = facts.options;
  return std::make_unique<RunFiles>(facts.comm, RunFiles::Settings{.output = o.output,
                                                                   .quiet = o.quiet || o.json,
                                                                   .hash_every = o.hash_every,
                                                                   .log_level = o.logging.level,
                                                                   .log_per_host = o.logging.per_host,
                                                                   .records = record_kinds(o.logging.records),
                                                                   .log_alone = !facts.trains()});
}

std::unique_ptr<Watchdog> watch_ranks(const RunFacts& facts, RunFiles& files, Heartbeat& heartbeat) {
  if (facts.options.stall.report == 0) return nullptr;
  comm::collectively(facts.comm, [&] {
    if (stack_signal() == 0) return;
    write_stacks_to(files.log().file());
    files.when_log_moves(write_stacks_to);
  });
  return std::make_unique<Watchdog>(facts.comm, heartbeat,
                                    WatchdogOptions{.stall = facts.options.stall.report,
                                                    .abort = facts.options.stall.abort,
                                                    .stack_signal = stack_signal(),
                                                    .stacks = stack_signal() != 0 ? files.log().file() : ""});
}

namespace {

// Returns the file that --weights names: of a run's folder the newest checkpoint, as of a run that trains nothing.
std::string file_of(const comm::Communicator& comm, std::string named) {
  comm::collectively(comm, [&] {
    std::error_code error;
    if (comm.is_root() && std::filesystem::is_directory(named, error))
      named = checkpoint::find_weights(named).file.string();
  });
  return comm.broadcast_string(named);
}

// What to do about a file of weights that does not fit the model.
std::string advice_for_weights(const RunFacts& facts, const std::vector<std::string>& keep) {
  if (!facts.trains()) return "; give the model's options as in the run that wrote it";
  if (keep.empty()) return "; for a new last layer add --replace-head";
  return formatted("; --replace-head leaves out {} alone", joined(keep, ", "));
}

}  // namespace

void load_weights(const RunFacts& facts, Trainer& trainer, const std::vector<std::string>& keep) {
  const std::string file = file_of(facts.comm, facts.options.weights);
  const checkpoint::LoadReport report = trainer.load_weights(file, {.strict = false, .keep = keep});
  comm::collectively(facts.comm, [&] {
    // Without training, --resume may have named the file, or its folder.
    check(fits(report, keep), "weights", "{}{}: {}{}", facts.trains() ? "--weights " : "", file, report.str(),
          advice_for_weights(facts, keep));
  });
  log()->info("weights: {} tensors from {}", report.loaded.size(), file);
  if (keep.empty()) return;
  log()->info("weights: new, with initial values: {}", joined(keep, ", "));
  std::vector<std::string> left = report.skipped;
  left.insert(left.end(), report.unexpected.begin(), report.unexpected.end());
  if (!left.empty()) log()->info("weights: not taken from the file: {}", joined(left, ", "));
}

io::FileDescriptor take_output(const RunFacts& facts, RunFiles& files, Checkpoints& checkpoints,
                               std::size_t checkpoint_bytes, std::optional<std::int64_t> resumed_step) {
  const auto folder = files.folder().held();
  if (checkpoint_bytes > 0) host::check_address_space("a checkpoint", checkpoint_bytes + kWriterNeeds);
  if (facts.saves_by_itself()) checkpoints.start_writer();
  // Moves lines of another run aside, also if this run begins from that run's checkpoint.
  const auto before = files.folder().run();
  const std::optional<std::int64_t> continued = before && *before != files.run() ? std::nullopt : resumed_step;
  files.check(continued.has_value());
  io::FileDescriptor trace;
  if (!facts.options.trace.file.empty()) trace = open_trace(facts.options.trace.file);
  files.open(folder, continued);
  set_checkpoints_aside(*folder, resumed_step, files.run());
  files.folder().begin(files.run());
  return trace;
}

}  // namespace lockstep::train
