// Writes the checkpoints of a run: all ranks together copy the state at a step, and rank 0 writes it while training
// goes on. All ranks make the same calls; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/report/run_record.h"
#include "lockstep/train/run/increment_base.h"
#include "lockstep/train/run/stream_course.h"
#include "lockstep/train/run/table_copy.h"
#include "lockstep/train/state/table_state.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class Checkpoints {
 public:
  struct Settings {
    checkpoint::Retention keep = {};
    // One of this number of checkpoints has all rows of sparse tables; the others have the changed rows, if the changed
    // rows are less than half of all.
    std::int64_t full_tables_every = 1;
    std::size_t table_copy_bytes = 0;  // larger tables are copied to a file (table_copy.h)
  };
  // All references must outlive this object.
  Checkpoints(const comm::Communicator& comm, Heartbeat& heartbeat, Trainer& trainer, RunFiles& files,
              Settings settings);

  // Saves also the progress and the reservoirs of this stream, which must outlive this object; null: there is none.
  void save_also(const StreamCourse* stream) { stream_ = stream; }
  // On rank 0, allocates memory for a copy and starts the writer; the first save() does it otherwise.
  void start_writer();
  // Copies the state and starts to write it, with the step's `metadata` and `record`. No rank waits for the disk: rank
  // 0 reports a failed write and tries again. Returns, on rank 0, the seconds that the checkpoint before took; 0: not
  // known. Collective. If rank 0 cannot write large tables or the past samples of streams to files from which the
  // writer takes them, a warning says so, and the step is not saved.
  double save(const std::string& metadata, const RunRecord& record);
  // Waits until the writer no longer reads the copy of the last save(); the file may still be on its way to the disk.
  void claim();
  void finish();  // waits until the last checkpoint is on the disk; throws AgreedError if it cannot be; collective
  // On rank 0, a line of the log with the best checkpoint if the run keeps it (Retention::best); after finish().
  void name_best();

  std::int64_t saved_step() const { return saved_step_; }  // the step of the newest checkpoint; -1: there is none
  bool is_unsaved() const { return outdated_ || saved_step_ != trainer_.updates(); }
  // There is a checkpoint of the present step, with a record that has changed since.
  bool is_outdated() const { return outdated_ && saved_step_ == trainer_.updates(); }
  // The run resumes from the checkpoint of this step; `base`: on rank 0, see IncrementBase::resumed().
  void found(std::int64_t step, const std::optional<checkpoint::Base>& base);
  void outdate() { outdated_ = true; }  // the record has changed without a step, so it must be saved

 private:
  // The parts of a step's state, as the last save() found them.
  struct Copy {
    std::unique_ptr<checkpoint::StateSnapshot> state;
    TableCopy tables;
    std::unique_ptr<io::TensorSpool> samples;  // past samples of all ranks; null: there is no stream
    io::TensorSource tensors();                // of all parts
  };

  void wait_for_writer();
  std::optional<io::Folder> folder(std::string& error);
  TableSave::Rows choose_rows(std::int64_t step, std::size_t& bytes);
  bool copy_state(std::int64_t step, TableSave::Rows rows, std::size_t table_bytes);
  bool spool_stream(std::int64_t step);
  bool is_copied(std::int64_t step, const std::string& error_of_root);
  void write(std::int64_t step, TableSave::Rows rows, const std::string& metadata, const RunRecord& record);

  const comm::Communicator& comm_;
  Heartbeat& heartbeat_;
  Trainer& trainer_;
  RunFiles& files_;
  Settings settings_;
  std::int64_t saved_step_ = -1;
  bool outdated_ = false;
  const StreamCourse* stream_ = nullptr;
  // On all ranks: the reason for which tables or past samples of the last checkpoint could not be copied; empty: they
  // could.
  std::string failure_;
  // On rank 0. The writer reads the copy and is therefore destroyed first.
  Copy copy_;
  IncrementBase base_;
  std::unique_ptr<checkpoint::BackgroundWriter> writer_;
};

}  // namespace lockstep::train
