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
                         Settings settings)
    : comm_(comm), heartbeat_(heartbeat), trainer_(trainer), files_(files), settings_(std::move(settings)) {}

void Checkpoints::start_writer() {
  copy_.state = trainer_.make_snapshot();
  writer_ = std::make_unique<checkpoint::BackgroundWriter>(checkpoint::BackgroundWriterOptions{
      .folder = [this] { return files_.folder().folder()->make("checkpoints"); },
      .keep = settings_.keep,
      .report =
          [this](const checkpoint::Written& w) {
            files_.log().to_file(fmt::format("saved {}, {:.2f} s after it was copied", w.path.string(), w.seconds));
            // Last, as a failure makes the writer try again. The computing thread waits before it makes the next copy.
            copy_.tables.free();
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
  const double seconds = writer_ ? writer_->written().seconds : 0;
  // Rank 0 may be slow here, and the other ranks wait for it.
  if (!comm_.is_root()) heartbeat_.wait();
  std::size_t table_bytes = 0;
  const TableSave::Rows rows = choose_rows(step, table_bytes);
  if (!copy_state(step, rows, table_bytes) || !spool_stream(step)) return seconds;
  heartbeat_.beat();
  fault_point("checkpoint.snapshot", step);
  if (writer_) write(step, rows, metadata, record);
  saved_step_ = step;
  outdated_ = false;
  return seconds;
}

void Checkpoints::write(std::int64_t step, TableSave::Rows rows, const std::string& metadata, const RunRecord& record) {
  const std::optional<EvaluationRecord>& evaluation = record.evaluation;
  std::optional<checkpoint::Score> score;
  if (evaluation && evaluation->step == step) score = score_of(*evaluation, settings_.keep.best);
  std::string note = checkpoint::note_of(files_.run(), score, settings_.keep);
  if (rows == TableSave::Rows::Changed) note = checkpoint::note_with_base(note, base_.begin_increment());
  writer_->write({.tensors = copy_.tensors(), .metadata = metadata, .note = std::move(note), .step = step});
}

io::TensorSource Checkpoints::Copy::tensors() {
  state->add(tables.tensors());
  if (samples) state->add(samples->tensors());
  return state->tensors();
}

// Decides, on all ranks alike, which rows of sparse tables the checkpoint has; `bytes` becomes their size.
TableSave::Rows Checkpoints::choose_rows(std::int64_t step, std::size_t& bytes) {
  bytes = trainer_.table_bytes();
  if (settings_.full_tables_every <= 1 || bytes == 0) return TableSave::Rows::All;
  const std::size_t changed = trainer_.changed_bytes();
  bool increment = false;
  if (comm_.is_root()) {
    std::string error;
    const auto in = folder(error);
    increment = in && changed < bytes / 2 && base_.find(writer_->written(), *in, step, settings_.full_tables_every - 1);
    if (!increment) base_.begin_full(step, writer_->written().hash);
  }
  if (comm_.broadcast_value(std::uint8_t{increment}) == 0) return TableSave::Rows::AllAsBase;
  bytes = changed;
  return TableSave::Rows::Changed;
}

// On rank 0: opens the folder of checkpoints; empty: `error` says why it could not be opened.
std::optional<io::Folder> Checkpoints::folder(std::string& error) {
  try {
    return files_.folder().folder()->make("checkpoints");
  } catch (const std::exception& failed) {
    error = failed.what();
    return std::nullopt;
  }
}

// Copies the state. Returns false, on all ranks, if tables could not be copied.
bool Checkpoints::copy_state(std::int64_t step, TableSave::Rows rows, std::size_t table_bytes) {
  const bool to_file = table_bytes > settings_.table_copy_bytes;
  const auto before = std::chrono::steady_clock::now();
  std::string error;
  if (comm_.is_root()) {
    const auto in = to_file ? folder(error) : std::nullopt;
    copy_.tables.begin(in ? &*in : nullptr);
  }
  const bool takes = error.empty();
  trainer_.snapshot(copy_.state.get(), {.rows = rows, .take = [&](io::NamedTensor tensor) {
                                          if (takes) copy_.tables.take(std::move(tensor));
                                          heartbeat_.beat();
                                        }});
  if (table_bytes == 0) return true;
  if (comm_.is_root() && takes) {
    copy_.tables.end();
    error = copy_.tables.error();
  }
  const std::chrono::duration<double> stood = std::chrono::steady_clock::now() - before;
  if (comm_.is_root() && to_file)
    log()->info(
        "checkpoint of step {}: training stood still for {:.1f} s while {} MiB of sparse tables were copied to a "
        "file",
        step, stood.count(), (table_bytes + (1 << 20) - 1) >> 20);
  if (is_copied(step, error)) return true;
  copy_.tables.free();
  return false;
}

// Returns, on all ranks, whether rank 0 has no error; else a warning says that training goes on without this
// checkpoint.
bool Checkpoints::is_copied(std::int64_t step, const std::string& error_of_root) {
  failure_ = comm_.broadcast_string(error_of_root);
  if (failure_.empty()) return true;
  if (comm_.is_root())
    log()->warn("the checkpoint of step {} is not written, and training goes on: {}", step, failure_);
  return false;
}

// Writes the past samples of all ranks to a file beside the checkpoints, from where the writer takes them. Returns
// false, on all ranks, if that fails: training goes on without this checkpoint.
bool Checkpoints::spool_stream(std::int64_t step) {
  failure_.clear();
  if (stream_ == nullptr) return true;
  copy_.samples.reset();
  std::string error;
  const std::optional<io::Folder> in = comm_.is_root() ? folder(error) : std::nullopt;
  error = comm_.broadcast_string(error);
  if (error.empty()) {
    Spooled spooled = stream_->spool(heartbeat_, in ? &*in : nullptr);
    copy_.samples = std::move(spooled.spool);
    error = spooled.error;
  }
  if (is_copied(step, error)) return true;
  copy_.samples.reset();
  return false;
}

void Checkpoints::found(std::int64_t step, const std::optional<checkpoint::Base>& base) {
  saved_step_ = step;
  outdated_ = false;
  if (base) base_.resumed(*base);
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
  if (settings_.keep.best.empty() || !comm_.is_root()) return;
  try {
    const auto folder = files_.folder().folder()->find_inside("checkpoints");
    const auto best = folder ? checkpoint::best(*folder, settings_.keep) : std::nullopt;
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
