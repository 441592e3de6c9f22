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

#include "lockstep/checkpoint/file.h"
#include "lockstep/core/threads.h"
#include "lockstep/data/open.h"
#include "lockstep/train/log.h"
#include "lockstep/train/memory_forecast.h"
#include "lockstep/train/metrics.h"
#include "lockstep/train/options.h"
#include "lockstep/train/progress.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {

class Session {
 public:
  // `program` are the program's own options ("depth"), which ranks must agree on and checkpoints remember.
  Session(const comm::Communicator& comm, Options options, std::string name, nlohmann::json program);
  ~Session();

  const Options& options() const { return options_; }
  const comm::Communicator& comm() const { return comm_; }
  const data::DatasetPair& data() const { return data_; }

  // Compiles the model and loads the checkpoint that --resume asks for. The inputs of `model` are "image" and "label".
  Trainer& build(const nn::Module& module, const ModelFunction& model);
  Trainer& trainer() { return *trainer_; }

  // False when the epochs or steps asked for are done. A resumed run begins in mid-epoch.
  bool next_epoch();
  // The rest of this epoch's batches, up to --max-steps.
  class Batches;
  Batches batches();
  double learning_rate() const { return rate_; }  // for the batch at hand
  void report(const Totals& step);                // of the batch at hand: metrics, progress, checkpoint if one is due
  void finish_epoch();                            // evaluation and checkpoint if they are due
  Totals evaluate();

 private:
  bool done() const;
  void open_output();
  void open_loaders();
  void forecast_memory();
  void announce() const;
  void load_weights();
  void resume();
  void check_continues(const nlohmann::json& metadata, const std::string& place) const;
  void restore(const checkpoint::Checkpoint& checkpoint, const std::string& place);
  bool roll_back();
  void save_checkpoint();
  nlohmann::json metadata() const;
  double epochs_done() const;  // a fraction within an epoch
  double seconds() const;
  void follow_trace();
  void finish_trace(std::int64_t updates);
  void write_metrics(const std::string& split, const Totals& totals, double samples_per_second);

  const comm::Communicator& comm_;
  Options options_;
  std::string name_;
  nlohmann::json program_;
  DType dtype_;
  ThreadBudget threads_;
  data::DatasetPair data_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<data::Loader> train_loader_, eval_loader_;
  MemoryForecast memory_;
  Trace trace_;  // before the trainer, which notes in it
  bool traced_ = false;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<Progress> progress_;
  optim::Schedule schedule_;
  double rate_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<std::int64_t> resumed_step_;
  std::int64_t epoch_ = -1, first_step_of_epoch_ = 0, saved_step_ = -1, logged_samples_ = 0;
  bool save_after_evaluation_ = false;
  ProgressState state_;
  Totals epoch_totals_;  // sums of this epoch's updates
  double logged_at_ = 0;
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
