#include "lockstep/train/run/checkpoints.h"

#include <fmt/format.h>

#include <chrono>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/log.h"
#include "lockstep/train/report/metric_result.h"

namespace lockstep::train {
namespace {

// The loss and the metric by which checkpoints are kept: a file's header has no room for many.
checkpoint::Score score_of(const EvaluationRecord& evaluation, const std::string& best) {
  checkpoint::Score score{.loss = evaluation.loss};
  if (const auto value = find_result(evaluation.metrics, best)) score.metrics[best] = *value;
  return score;
}

// "accuracy 98.80%"
std::string best_text(const Trainer& trainer, const checkpoint::Best& best) {
  for (const MetricRule& rule : trainer.metrics()) {
    if (rule.name == best.metric)
      return MetricResult{.name = rule.name, .results = {best.value}, .form = rule.form}.str();
  }
  return fmt::format("{} {}", best.metric, loss_text(best.value));
}

}  // namespace

Checkpoints::Checkpoints(const comm::Communicator& comm, Heartbeat& heartbeat, Trainer& trainer, RunFiles& files,
                         checkpoint::Retention keep)
    : comm_(comm), heartbeat_(heartbeat), trainer_(trainer), files_(files), keep_(std::move(keep)) {}

void Checkpoints::start_writer() {
  snapshot_ = trainer_.make_snapshot();
  writer_ = std::make_unique<checkpoint::BackgroundWriter>(checkpoint::BackgroundWriterOptions{
      .folder = [this] { return files_.folder().folder()->make("checkpoints"); },
      .keep = keep_,
      .report =
          [this](const checkpoint::Written& w) {
            files_.log().to_file(fmt::format("saved {}, {:.2f} s after it was copied", w.path.string(), w.seconds));
          }});
}

void Checkpoints::wait_for_writer() {
  if (!writer_) start_writer();
  const auto before = std::chrono::steady_clock::now();
  writer_->claim();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - before;
  if (waited.count() > 1)
    log()->info("waited {:.1f} s for the previous checkpoint: checkpoints are due faster than they can be written",
                waited.count());
}

double Checkpoints::save(const std::string& metadata, const RunRecord& record) {
  const std::int64_t step = trainer_.updates();
  if (comm_.is_root()) wait_for_writer();
  const double seconds = writer_ ? writer_->seconds() : 0;
  // Rank 0 may be slow here, and the other ranks wait for it.
  if (!comm_.is_root()) heartbeat_.wait();
  trainer_.snapshot(snapshot_.get());
  if (!spool_stream(step)) return seconds;
  heartbeat_.beat();
  fault_point("checkpoint.snapshot", step);
  if (writer_) {
    const std::optional<EvaluationRecord>& evaluation = record.evaluation;
    std::optional<checkpoint::Score> score;
    if (evaluation && evaluation->step == step) score = score_of(*evaluation, keep_.best);
    if (spool_) snapshot_->add(spool_->tensors());
    writer_->write({.tensors = snapshot_->tensors(),
                    .metadata = metadata,
                    .note = checkpoint::note_of(files_.run(), score, keep_),
                    .step = step});
  }
  saved_step_ = step;
  outdated_ = false;
  return seconds;
}

// Writes the past samples of all ranks to a file beside the checkpoints, from where the writer takes them. Returns
// false, on all ranks, if that fails: training goes on without this checkpoint.
bool Checkpoints::spool_stream(std::int64_t step) {
  if (stream_ == nullptr) return true;
  spool_.reset();
  std::optional<io::Folder> folder;
  std::string error;
  if (comm_.is_root()) {
    try {
      folder = files_.folder().folder()->make("checkpoints");
    } catch (const std::exception& failed) {
      error = failed.what();
    }
  }
  error = comm_.broadcast_string(error);
  if (error.empty()) {
    Spooled spooled = stream_->spool(heartbeat_, folder ? &*folder : nullptr);
    spool_ = std::move(spooled.spool);
    error = spooled.error;
  }
  failure_ = error;
  if (error.empty()) return true;
  spool_.reset();
  if (comm_.is_root()) log()->warn("the checkpoint of step {} is not written, and training goes on: {}", step, error);
  return false;
}

void Checkpoints::claim() {
  if (writer_) writer_->claim();
}

void Checkpoints::finish() {
  heartbeat_.enter(Heartbeat::Phase::Saving);
  if (!comm_.is_root()) heartbeat_.wait();
  comm::collectively(comm_, [&] {
    check(failure_.empty(), "checkpoint", "the final checkpoint could not be written: {}", failure_);
    if (writer_) writer_->finish();
  });
  heartbeat_.enter(Heartbeat::Phase::Ending);
}

void Checkpoints::name_best() {
  if (keep_.best.empty() || !comm_.is_root()) return;
  try {
    const auto folder = files_.folder().folder()->find_inside("checkpoints");
    const auto best = folder ? checkpoint::best(*folder, keep_) : std::nullopt;
    if (!best) {
      log()->info("best checkpoint: none, as no checkpoint was written right after an evaluation");
      return;
    }
    log()->info("best checkpoint: {} at step {}, {}", best_text(trainer_, *best), best->step, best->path.string());
  } catch (const Error& error) {
    log()->warn("the best checkpoint cannot be named: {}", error.what());
  }
}

}  // namespace lockstep::train
