#include "lockstep/train/run/resume.h"

#include <fmt/format.h>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/train/run/run_metadata.h"

namespace lockstep::train {
namespace {

// Opens the newest whole checkpoint of `run`, or of any run if that is empty. Logs checkpoints of other runs, which
// another job has put there.
std::optional<checkpoint::StoredCheckpoint> newest_of_run(const io::Folder& checkpoints, const std::string& run,
                                                          std::string& path) {
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
                              "checkpoint {} belongs to run {}, and this is run {}: it is ignored; --resume {} would "
                              "begin from it",
                              entry.path.string(), other, run, entry.path.string());
                        }});
  check(newest || !damaged, "resume", "no checkpoint in {} can be used (reasons above); move them away to start anew",
        checkpoints.path().string());
  if (!newest) return std::nullopt;
  path = newest->path.string();
  return std::move(newest->file);
}

}  // namespace

nlohmann::json Resumption::metadata_now() const { return metadata(facts_, trainer_, course_, record_, files_.run()); }

// On rank 0: opens and verifies the checkpoint to resume from, and sets its path; empty: none, a first start.
// Determines the id of the run: the folder's, unless the run begins anew or from a checkpoint of another run.
std::optional<checkpoint::StoredCheckpoint> Resumption::file_to_resume(const std::string& from, std::string& path) {
  std::string run = files_.run();
  const bool running = !run.empty();  // the run rolls back
  const std::string before = running ? run : files_.folder().run().value_or("");
  std::optional<checkpoint::StoredCheckpoint> file;
  if (from == "auto") {
    const auto output = running ? files_.folder().folder() : files_.folder().held();
    file = newest_of_run(output->make("checkpoints"), before, path);
    run = !before.empty() || !file ? before : checkpoint::run_of(file->note());
  } else if (!from.empty()) {
    path = from;
    file = checkpoint::open_checkpoint(from);
    const std::string writer = checkpoint::run_of(file->note());
    if (writer.empty() || writer == before) run = before;
    if (run.empty()) run = checkpoint::new_run_id();
    if (!writer.empty() && writer != run)
      log()->info("resume: {} was written by run {}; a new run, {}, begins from it", path, writer, run);
  }
  files_.set_run(run.empty() ? checkpoint::new_run_id() : run);
  return file;
}

// Rank 0 reads and verifies the file, once; the other ranks receive metadata, and the tensors that they write.
std::optional<std::int64_t> Resumption::resume(const std::string& from) {
  const comm::Communicator& comm = facts_.comm;
  std::string path;
  std::optional<checkpoint::StoredCheckpoint> file;  // only on rank 0
  comm::collectively(comm, [&] {
    if (comm.is_root()) file = file_to_resume(from, path);
  });
  files_.set_run(comm.broadcast_string(files_.run()));
  path = comm.broadcast_string(path);
  if (path.empty()) {
    const std::filesystem::path folder = std::filesystem::path(files_.output()) / "checkpoints";
    if (!from.empty()) log()->info("no checkpoint in {} yet: starting at step 0", folder.string());
    if (course_.stream() != nullptr) course_.stream()->open();
    return std::nullopt;
  }
  const std::string saved_metadata = comm.broadcast_string(file ? file->metadata() : "");
  restore(saved_metadata, file ? file->tensors(true) : io::TensorSource(), from, path);
  if (file) base_ = checkpoint::base_of(file->note());
  if (file && !base_) base_ = checkpoint::Base{.step = trainer_.updates(), .hash = file->hash()};
  return trainer_.updates();
}

void Resumption::restore(const std::string& saved_metadata, const io::TensorSource& of_root, const std::string& from,
                         const std::string& path) {
  nlohmann::json metadata;
  Continuation continued;
  RunRecord record;
  StreamProgress streams;
  comm::collectively(facts_.comm, [&] {
    metadata = parse_metadata(saved_metadata, path);
    continued = continuation(metadata, metadata_now(), path, facts_.options.checkpoints.change_bits);
    record = run_record(metadata, path);
    if (course_.stream() != nullptr) streams = stream_progress(metadata, path);
  });
  try {
    trainer_.load(of_root, path, continued.step);
  } catch (const comm::AgreedError& error) {
    const std::string difference = model_difference(metadata, metadata_now());
    throw comm::AgreedError(
        fmt::format("[resume] {}: {}{}{}", path, difference, difference.empty() ? "" : ": ", error.what()));
  }
  const data::SamplerPosition position{continued.epoch, continued.offset};
  if (course_.stream() != nullptr)
    course_.stream()->reopen(streams, position, of_root, path);
  else
    course_.training().seek(position);
  record_ = record;
  const data::SamplerPosition at = course_.position();
  if (record.epoch.epoch < 0 && at.offset > 0) record_.epoch = {.epoch = at.epoch, .after = trainer_.updates()};
  for (const std::string& line : continued.notes) log()->info("resume: {}", line);
  warn_of_differences(continued, from, path);
  log()->info("resumed {} at step {}, {} of {} {} into epoch {}", path, trainer_.updates(), at.offset,
              course_.epoch_size(), course_.stream() != nullptr ? "steps" : "samples", at.epoch + 1);
}

void Resumption::warn_of_differences(const Continuation& continued, const std::string& from,
                                     const std::string& path) const {
  if (!facts_.comm.is_root()) return;
  if (from == "auto" && std::filesystem::path(path).filename() != checkpoint::name_for(continued.step))
    log()->warn(
        "resume: {} contains step {}, which differs from its name: is it a copy of another file? The run resumes from "
        "it, because its name makes it the newest checkpoint; --resume FILE takes another one",
        path, continued.step);
  const double now = course_.schedule_epochs(), before = continued.schedule_epochs.value_or(now);
  if (facts_.options.rate.has_end() && before != now)
    log()->warn(
        "resume: the learning-rate schedule ends after {:.4g} epochs, and after {:.4g} in the run that wrote the "
        "checkpoint: the learning rate will differ from that run's",
        now, before);
}

}  // namespace lockstep::train
