// The part of Session that saves and restores: what a checkpoint holds beside tensors, and what must agree when it is
// resumed.
#include <fmt/format.h>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/process_memory.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/session.h"
#include "lockstep/train/session_setup.h"

namespace lockstep::train {
namespace {

std::filesystem::path checkpoint_directory(const Options& options) {
  return std::filesystem::path(options.output) / "checkpoints";
}

// The file to go on from; nullopt: none, a first start.
std::optional<std::filesystem::path> file_to_resume(const Options& options) {
  if (options.resume.empty()) return std::nullopt;
  if (options.resume != "auto") return options.resume;
  bool damaged = false;
  const auto newest = checkpoint::newest_whole(
      checkpoint_directory(options), [&](const checkpoint::Entry& entry, const std::string& reason) {
        damaged = true;
        log()->warn("checkpoint {} cannot be used: {}", entry.path.string(), reason);
      });
  check(newest || !damaged, "resume", "every checkpoint in {} is damaged; remove them to start anew",
        checkpoint_directory(options).string());
  if (!newest) return std::nullopt;
  return newest->path;
}

}  // namespace

nlohmann::json Session::metadata() const {
  const data::SamplerPosition at = train_loader_->position();
  const CpuInfo cpu = cpu_info();
  return {{"version", kMetadataVersion},
          {"program", name_},
          {"step", trainer_->updates()},
          {"epoch", at.epoch},
          {"offset", at.offset},
          {"seed", options_.seed},
          {"train_samples", data_.train->size()},
          {"global_batch", global_batch(options_, comm_.size())},
          {"options", nlohmann::json::parse(canonical(options_, program_))},
          {"ranks", comm_.size()},
          {"threads", threads_.compute},
          {"instructions", cpu.instructions},
          {"blas", cpu.blas},
          {"kernels", trainer_->kernels()},
          {"lockstep", LOCKSTEP_VERSION},
          {"compiler", __VERSION__},
          {"mpi", comm::Environment::library()},
          {"optimizer", trainer_->options().rule->name()}};
}

void Session::save_checkpoint() {
  progress_->pause();
  std::vector<checkpoint::NamedTensor> state = trainer_->state(comm_.is_root());
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    const auto path = checkpoint::path_for(checkpoint_directory(options_), trainer_->updates());
    checkpoint::save(path, {.tensors = std::move(state), .metadata = metadata().dump()});
    log_->to_file(fmt::format("saved {}", path.string()));
    try {
      if (options_.keep > 0) checkpoint::prune(checkpoint_directory(options_), options_.keep);
    } catch (const Error& error) {  // the new one is safe: too many files are no reason to stop
      log()->warn("older checkpoints stay: {}", error.what());
    }
  });
  release_freed_memory();
  saved_step_ = trainer_->updates();
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

// Rank 0 reads and verifies; the bytes go to all, and each rank verifies them again.
void Session::resume() {
  std::string place;
  std::vector<std::byte> bytes;
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    if (const auto path = file_to_resume(options_)) {
      place = path->string();
      bytes = checkpoint::read_verified(*path);
    }
  });
  place = comm_.broadcast_string(place);
  if (place.empty()) {
    if (!options_.resume.empty())
      log()->info("no checkpoint in {} yet: starting at step 0", checkpoint_directory(options_).string());
    return;
  }
  comm_.broadcast_vector(bytes);
  comm::collectively(comm_, [&] { restore(checkpoint::parse(bytes, place), place); });
}

void Session::restore(const checkpoint::Checkpoint& saved, const std::string& place) {
  const nlohmann::json metadata = parse_metadata(saved.metadata, place);
  const Continuation from = continuation(metadata, this->metadata(), place);
  try {
    trainer_->load(saved.tensors, from.step);
  } catch (const Error& error) {
    throw Error(fmt::format("[resume] {}: {}", place, error.what()));
  }
  train_loader_->seek({from.epoch, from.offset});
  resumed_step_ = saved_step_ = trainer_->updates();
  for (const std::string& line : from.notes) log()->info("resume: {}", line);
  log()->info("resumed {} at step {}, {} of {} samples into epoch {}", place, trainer_->updates(),
              train_loader_->position().offset, data_.train->size(), train_loader_->position().epoch + 1);
}

}  // namespace lockstep::train
