// A training run of a program: data, loaders, trainer, schedule, log, metrics, progress, checkpoints and resuming, as
// its options say. The program keeps the loop:
//
//   session.build(network, forward);
//   while (session.next_epoch()) {
//     for (data::Batch& batch : session.batches()) session.report(session.trainer().step(batch,
//     session.learning_rate())); session.finish_epoch();
//   }
//
// All ranks make the same calls, from one thread. What all ranks can know before the first step fails on all of them
// together.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/output_folder.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/monitor/deadline.h"
#include "lockstep/train/monitor/watchdog.h"
#include "lockstep/train/options/options.h"
#include "lockstep/train/report/epoch_sums.h"
#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/log.h"
#include "lockstep/train/report/metrics.h"
#include "lockstep/train/report/progress.h"
#include "lockstep/train/step/memory_forecast.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class Session {
 public:
  // `program` are the program's own options ("depth"), which ranks must agree on and checkpoints remember.
  // The data set is that of `catalogue` which the options name.
  Session(const comm::Communicator& comm, Options options, std::string name, nlohmann::json program,
          data::Catalogue catalogue);
  ~Session();

  const Options& options() const { return options_; }
  const comm::Communicator& comm() const { return comm_; }
  const data::DatasetPair& data() const { return data_; }

  // Compiles the model and loads the checkpoint that --resume asks for. The inputs of `model` are "image" and "label".
  Trainer& build(const nn::Module& module, const ModelFunction& model);
  Trainer& trainer() { return *trainer_; }

  // False when the epochs or steps asked for are done, or the run was asked to stop (train/run/requests.h); then the
  // step's state is on disk. A resumed run begins in mid-epoch.
  bool next_epoch();
  // The rest of this epoch's batches, up to --max-steps.
  class Batches;
  Batches batches();
  double learning_rate() const { return rate_; }  // for the batch at hand
  void report(const Totals& step);                // of the batch at hand: metrics, progress, checkpoint if one is due
  void finish_epoch();                            // evaluation and checkpoint if they are due
  Totals evaluate();
  // What the program ends with: 75 (train/run/requests.h) if it was asked to stop and there is something left to do,
  // else 0.
  int status() const;
  // Until all ranks are here, which a watchdog sees as waiting.
  void wait_for_others();

 private:
  bool done() const;
  bool is_unsaved() const { return resave_ || saved_step_ != trainer_->updates(); }
  bool saves_by_itself() const;  // without being asked to
  void open_output();
  void open_loaders();
  void take_output();
  void check_last_batch() const;
  void forecast_memory();
  void announce() const;
  void load_weights();
  void resume();
  void restore(const checkpoint::Checkpoint& checkpoint, const std::string& place);
  std::optional<checkpoint::LoadedFile> file_to_resume(std::string& place);
  void start_writer();
  void save_checkpoint();     // copied now, written in the background
  void finish_checkpoints();  // until the last one is on the disk; collective
  void keep_files();          // log, metrics and hashes, which somebody may have removed or replaced
  void log_hashes();
  bool roll_back();
  nlohmann::json metadata() const;
  double epochs_done() const;        // a fraction within an epoch
  std::int64_t total_steps() const;  // at which the run ends
  double schedule_epochs() const;    // at which the learning-rate schedule ends
  double seconds() const;
  void watch_ranks();
  void watch_clock();
  std::uint64_t my_requests();
  void answer_requests();
  bool evaluation_is_due() const;
  void evaluate_epoch();
  void make_up_evaluation();
  void follow_trace();
  void finish_trace(std::int64_t updates);
  void add_to_epoch(const Totals& step);
  void write_metrics(const std::string& split, const Totals& totals, double samples_per_second);
  void write_epoch_metrics();

  const comm::Communicator& comm_;
  Options options_;
  std::string name_;
  nlohmann::json program_;
  DType dtype_;
  ThreadBudget threads_;
  data::DatasetPair data_;
  std::unique_ptr<checkpoint::OutputFolder> output_;  // on rank 0
  std::string run_;                                   // the run's id, the same on all ranks
  std::unique_ptr<Log> log_;
  Heartbeat heartbeat_;  // these two before the trainer, which beats
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<data::Loader> train_loader_, eval_loader_;
  MemoryForecast memory_;
  Trace trace_;                            // before the trainer, which notes in it
  checkpoint::FileDescriptor trace_file_;  // on rank 0
  bool traced_ = false;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<HashLog> hashes_;
  std::string lost_files_;  // why files could not be opened anew, as it was said last
  std::unique_ptr<Progress> progress_;
  optim::Schedule schedule_;
  double rate_ = 0;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();  // the session
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<std::int64_t> resumed_step_;
  std::int64_t epoch_ = -1, first_step_of_epoch_ = 0, saved_step_ = -1, logged_samples_ = 0;
  bool save_after_evaluation_ = false, evaluation_due_ = false, making_up_ = false, stopped_ = false;
  bool resave_ = false;  // what is to be saved has changed since, though no step came
  Deadline deadline_;    // on rank 0
  std::chrono::steady_clock::time_point saved_at_ = started_;  // the last checkpoint, for --checkpoint-every-minutes
  nlohmann::json evaluation_;                                  // the last whole one: step, loss, accuracy; null without
  ProgressState state_;
  EpochSums epoch_sums_;
  std::int64_t epoch_samples_ = 0;  // of the epoch, trained since the program started or went back
  double logged_at_ = 0, epoch_began_ = 0;
  // Of rank 0. The writer, which reads the snapshot, goes first.
  std::unique_ptr<StateSnapshot> snapshot_;
  std::unique_ptr<checkpoint::BackgroundWriter> writer_;
};

// Input range of Batch&, over what next_epoch() began.
class Session::Batches {
 public:
  class Iterator {
   public:
    explicit Iterator(Batches* range) : range_(range) {}
    data::Batch& operator*() const { return range_->batch_; }
    Iterator& operator++() {
      range_->advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !range_->open_; }

   private:
    Batches* range_;
  };
  explicit Batches(Session& session) : session_(session) {}
  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  void advance();
  Session& session_;
  data::Batch batch_;
  bool open_ = true;
};

}  // namespace lockstep::train
