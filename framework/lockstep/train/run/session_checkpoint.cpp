// The part of Session that saves and restores: what a checkpoint holds beside tensors, and what must agree when it is
// resumed.
#include <fmt/format.h>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/log.h"
#include "lockstep/train/monitor/stack_signal.h"
#include "lockstep/train/run/continuation.h"
#include "lockstep/train/run/session.h"
#include "lockstep/train/run/session_setup.h"

namespace lockstep::train {
namespace {

std::filesystem::path checkpoint_directory(const Options& options) {
  return std::filesystem::path(options.output) / "checkpoints";
}

// The newest whole checkpoint of `run`, of any run if that is empty. Those of other runs, which another job put there,
// are named.
std::optional<checkpoint::LoadedFile> newest_of_run(const checkpoint::Folder& checkpoints, const std::string& run,
                                                    std::string& place) {
  bool damaged = false;
  auto newest = checkpoint::newest_whole(
      checkpoints, {.run = run,
                    .damaged =
                        [&](const checkpoint::Entry& entry, const std::string& reason) {
                          damaged = true;
                          log()->warn("checkpoint {} cannot be used: {}", entry.path.string(), reason);
                        },
                    .foreign =
                        [&](const checkpoint::Entry& entry, const std::string& other) {
                          log()->warn(
                              "checkpoint {} is of run {}, and this is run {}: it is left out; --resume {} would begin "
                              "from it",
                              entry.path.string(), other, run, entry.path.string());
                        }});
  check(newest || !damaged, "resume", "every checkpoint in {} is damaged; remove them to start anew",
        checkpoints.path().string());
  if (!newest) return std::nullopt;
  place = newest->path.string();
  return std::move(newest->file);
}

}  // namespace

// On rank 0: the checkpoint to go on from, read and verified, and where it lies; empty: none, a first start. Settles
// which run this is: the folder's, unless it begins anew or from a checkpoint of another run.
std::optional<checkpoint::LoadedFile> Session::file_to_resume(std::string& place) {
  const bool running = !run_.empty();  // it goes back
  const std::string before = running ? run_ : output_->run().value_or("");
  std::optional<checkpoint::LoadedFile> file;
  if (options_.resume == "auto") {
    const auto output = running ? output_->folder() : output_->held();
    file = newest_of_run(output->make("checkpoints"), before, place);
    run_ = !before.empty() || !file ? before : checkpoint::run_of(file->note);
  } else if (!options_.resume.empty()) {
    place = options_.resume;
    file = checkpoint::read_checkpoint(options_.resume);
    const std::string writer = checkpoint::run_of(file->note);
    if (writer.empty() || writer == before) run_ = before;
    if (run_.empty()) run_ = checkpoint::new_run_id();
    if (!writer.empty() && writer != run_)
      log()->info("resume: {} was written by run {}; this is a new one, {}, which begins from it", place, writer, run_);
  }
  if (run_.empty()) run_ = checkpoint::new_run_id();
  return file;
}

nlohmann::json Session::metadata() const {
  const data::SamplerPosition at = train_loader_->position();
  const CpuInfo cpu = cpu_info();
  return {{"version", kMetadataVersion},
          {"program", name_},
          {"run", run_},
          {"step", trainer_->updates()},
          {"epoch", at.epoch},
          {"offset", at.offset},
          {"evaluation_due", evaluation_due_},  // of the epoch that ended there
          {"seed", options_.seed},
          {"train_samples", data_.train->size()},
          {"global_batch", global_batch(options_, comm_.size())},
          {"schedule_epochs", schedule_epochs()},
          {"options", nlohmann::json::parse(canonical(options_, program_))},
          {"ranks", comm_.size()},
          {"threads", threads_.compute},
          {"instructions", cpu.instructions},
          {"blas", cpu.blas},
          {"kernels", trainer_->kernels()},
          {"lockstep", LOCKSTEP_VERSION},
          {"compiler", __VERSION__},
          {"mpi", comm::Environment::library()},
          {"optimizer", trainer_->options().rule->name()},
          {"evaluation", evaluation_},
          {kEpochSumsKey, to_json(epoch_sums_)}};
}

void Session::start_writer() {
  snapshot_ = trainer_->make_snapshot();
  writer_ = std::make_unique<checkpoint::BackgroundWriter>(checkpoint::BackgroundWriterOptions{
      .folder = [this] { return output_->folder()->make("checkpoints"); },
      .keep = checkpoint::parse_retention(options_.keep, "options"),
      .report =
          [this](const checkpoint::Written& w) {
            log_->to_file(fmt::format("saved {}, {:.2f} s after it was copied", w.path.string(), w.seconds));
          }});
}

// No rank waits for another's disk: what fails is rank 0's to report and to try again.
void Session::save_checkpoint() {
  heartbeat_.enter(Heartbeat::Phase::Saving);
  progress_->pause();
  if (!trainer_->verify()) return;  // on from the checkpoint before
  keep_files();
  const std::int64_t step = trainer_->updates();
  if (comm_.is_root()) {
    if (!writer_) start_writer();
    const auto before = std::chrono::steady_clock::now();
    writer_->claim();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - before;
    if (waited.count() > 1)
      log()->info("waited {:.1f} s for the checkpoint before this one: they are due faster than they are written",
                  waited.count());
  }
  if (writer_ && writer_->seconds() > 0) deadline_.checkpoint_took(writer_->seconds());
  // Rank 0 may be slow here, and on it the others wait.
  if (!comm_.is_root()) heartbeat_.wait();
  trainer_->snapshot(snapshot_.get());
  heartbeat_.beat();
  fault_point("checkpoint.snapshot", step);
  if (writer_) {
    const bool scored = evaluation_.is_object() && evaluation_["step"] == step;
    std::optional<checkpoint::Score> score;
    if (scored) score = {evaluation_["accuracy"], evaluation_["loss"]};
    writer_->write({.tensors = snapshot_->tensors(),
                    .metadata = metadata().dump(),
                    .note = checkpoint::note_of(run_, score),
                    .step = step});
  }
  saved_step_ = step;
  resave_ = false;
  saved_at_ = std::chrono::steady_clock::now();
  heartbeat_.enter(Heartbeat::Phase::Outside);
}

void Session::finish_checkpoints() {
  heartbeat_.enter(Heartbeat::Phase::Saving);
  if (!comm_.is_root()) heartbeat_.wait();
  comm::collectively(comm_, [&] {
    if (writer_) writer_->finish();
  });
  heartbeat_.enter(Heartbeat::Phase::Ending);
}

// Of this rank alone, and no reason to end the run.
void Session::keep_files() {
  std::string problem;
  try {
    const bool moved = !log_->in_place();
    if (output_) {
      const auto output = output_->folder();
      log_->follow(*output);
      metrics_->follow(output);
      hashes_->follow(output);
    } else if (!log_->in_place()) {
      const auto output = checkpoint::find_folder_of_run(options_.output, run_);
      if (output) log_->follow(*output);
      // A folder that another job has taken is followed by rank 0, and the open file goes with it.
      if (!output && !log_->exists())
        problem = fmt::format("[log] {} was removed, and {} is not this run's folder now", log_->file().string(),
                              options_.output);
    }
    if (moved && watchdog_ && stack_signal() != 0 && log_->in_place()) write_stacks_to(log_->file());
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!problem.empty() && problem != lost_files_)
    log()->warn("{}; training goes on, and it is tried again at the next checkpoint or end of an epoch", problem);
  lost_files_ = problem;
}

void Session::load_weights() {
  const LoadReport report = trainer_->load_weights(options_.weights, {.strict = false});
  comm::collectively(comm_, [&] {
    check(report.complete(), "weights",
          "--weights {}: {}; to take what fits, as a new head needs, call Trainer::load_weights() in the program",
          options_.weights, report.str());
  });
  log()->info("weights: {} tensors from {}", report.loaded.size(), options_.weights);
}

// Rank 0 reads the file, once; each rank verifies its own copy of the bytes.
void Session::resume() {
  std::string place;
  checkpoint::LoadedFile file;
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    if (auto found = file_to_resume(place)) file = std::move(*found);
  });
  run_ = comm_.broadcast_string(run_);
  place = comm_.broadcast_string(place);
  if (place.empty()) {
    if (!options_.resume.empty())
      log()->info("no checkpoint in {} yet: starting at step 0", checkpoint_directory(options_).string());
    return;
  }
  comm_.broadcast_vector(file.bytes);
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) {
      if (fault_wanted("resume.receive")) file.bytes[file.bytes.size() / 2] ^= std::byte{1};
      file.contents = checkpoint::parse(file.bytes, fmt::format("{}, as this rank received it", place));
    }
    file.bytes = {};
  });
  restore(file.contents, place);
}

void Session::restore(const checkpoint::Checkpoint& saved, const std::string& place) {
  nlohmann::json metadata;
  Continuation from;
  EpochSums sums;
  comm::collectively(comm_, [&] {
    metadata = parse_metadata(saved.metadata, place);
    from = continuation(metadata, this->metadata(), place);
    sums = epoch_sums(metadata, place);
  });
  try {
    trainer_->load(saved.tensors, from.step);
  } catch (const comm::AgreedError& error) {
    const std::string difference = model_difference(metadata, this->metadata());
    throw comm::AgreedError(
        fmt::format("[resume] {}: {}{}{}", place, difference, difference.empty() ? "" : ": ", error.what()));
  }
  train_loader_->seek({from.epoch, from.offset});
  resumed_step_ = saved_step_ = trainer_->updates();
  evaluation_ = metadata.value("evaluation", nlohmann::json());
  evaluation_due_ = metadata.value("evaluation_due", false);
  epoch_sums_ = sums;
  if (const data::SamplerPosition at = train_loader_->position(); sums.epoch < 0 && at.offset > 0)
    epoch_sums_ = {.epoch = at.epoch, .after = trainer_->updates()};
  for (const std::string& line : from.notes) log()->info("resume: {}", line);
  if (comm_.is_root() && options_.resume == "auto" &&
      std::filesystem::path(place).filename() != checkpoint::name_for(from.step))
    log()->warn(
        "resume: {} holds step {}, as its name does not say: a copy of another file? It is taken for the newest "
        "checkpoint because of its name; --resume FILE takes another one",
        place, from.step);
  const bool has_end = options_.schedule == "cosine" || options_.schedule == "one-cycle";
  const double before = metadata.value("schedule_epochs", schedule_epochs());
  if (comm_.is_root() && has_end && before != schedule_epochs())
    log()->warn(
        "resume: the learning-rate schedule ends after {:.4g} epochs, after {:.4g} in the run that wrote the "
        "checkpoint: the rate is not what that run would have had",
        schedule_epochs(), before);
  log()->info("resumed {} at step {}, {} of {} samples into epoch {}", place, trainer_->updates(),
              train_loader_->position().offset, data_.train->size(), train_loader_->position().epoch + 1);
}

}  // namespace lockstep::train
