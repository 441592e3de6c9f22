// A training run of a program: data, loaders, trainer, schedule, log, metrics, progress, checkpoints and resume, as its
// options require. The program contains the loop:
//
//   session.build(network, forward);
//   while (session.next_epoch()) {
//     for (data::Batch& batch : session.batches())
//       session.report(session.trainer().step(batch, session.learning_rate()));
//     session.finish_epoch();
//   }
//
// With --evaluate-only or --predict (Options::purpose()) nothing is trained: build() loads the weights, and
// next_epoch() evaluates or predicts, and returns false.
//
// The training samples are those of a data set, or of producers that run beside the training (data::StreamSource): an
// epoch is then a number of steps, or ends with the streams of all ranks, and batches() may give a batch without
// samples to a rank whose stream has ended. A checkpoint contains how many samples each rank has consumed, and the
// reservoir.
//
// An ordered list of callbacks runs around steps, evaluations, epochs and checkpoints
// (train/callbacks/callback_list.h); a program adds its own: session.add<EarlyStop>(patience).
//
// All ranks must make the same calls, from one thread. Errors before the first step are thrown on all ranks together
// (AgreedError); later, functions throw as Trainer does.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/core/heartbeat.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/options/options.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::comm {
class Communicator;
}
namespace lockstep::nn {
class Module;
}

namespace lockstep::train {

class CallbackList;
class Course;
class RunFiles;
class RunState;
class Watchdog;
struct DataSource;
struct RunFacts;
struct RunParts;
struct RunRecord;

class Session {
 public:
  // Checks the options on all ranks, opens the data set of `catalogue` that they name, and opens the output folder.
  // `program` contains the program's own options as the text of a JSON object ({"depth": 20}); they must be equal on
  // all ranks, and checkpoints contain them. `comm` must outlive the session.
  Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
          data::Catalogue catalogue);
  // The same with the caller's own data, which may have any fields; options about data sets have no effect.
  Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
          data::RunData data);
  ~Session();

  const Options& options() const;
  const comm::Communicator& comm() const { return comm_; }
  const data::RunData& data() const;

  // Adds a callback of the program, which the session then owns; before build(). All ranks add the same ones: build()
  // throws AgreedError if types or needs differ.
  Callback& add(std::unique_ptr<Callback> callback);
  template <class C, class... Arguments>
  C& add(Arguments&&... arguments) {
    return static_cast<C&>(add(std::make_unique<C>(std::forward<Arguments>(arguments)...)));
  }

  // Compiles the model, and loads the checkpoint if --resume names one. The inputs of `model` are the fields of data(),
  // with the samples as first dimension: for images "image" (samples, channels, height, width) and "label" (samples).
  // `module` must outlive the session.
  Trainer& build(const nn::Module& module, const plan::ModelFunction& model);
  Trainer& trainer() { return *trainer_; }

  // Begins the next epoch, or the rest of one after a resume. Returns false when all requested epochs or steps are
  // done, or after a request to stop (train/monitor/requests.h); the last checkpoint is then on the disk.
  bool next_epoch();
  // Returns a range over the remaining batches of this epoch, up to --max-steps.
  class Batches;
  Batches batches();
  double learning_rate() const { return loop_.rate; }  // learning rate of the present batch
  void report(const Totals& step);  // call it after each step: metrics, progress, and a checkpoint if one is due
  void finish_epoch();              // call it after each epoch: evaluation and checkpoint, if they are due
  Totals evaluate();                // evaluates the model on the evaluation data; returns the totals of all ranks;
                                    // with --predict, which has no loss, does nothing
  // Returns the exit status of the program: 75 after a request to stop a run that is not complete
  // (train/monitor/requests.h), else 0.
  int status() const;
  // Waits for all ranks at the end of the program: after it, this rank makes no collective call of the session. The
  // watchdog ends the job if other ranks make one.
  void wait_for_others();

 private:
  Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
          DataSource source);
  // The position of the program's loop.
  struct Loop {
    std::int64_t epoch = -1, first_step = 0;  // the present epoch, from 0, and the number of updates before it
    double rate = 0;
    bool began = false;                      // this start has begun an epoch: it has steps to train
    bool stopped = false, finished = false;  // finished: the run is complete
    std::optional<std::int64_t> resumed_step = {};
  };
  bool done() const;
  bool advance(data::Batch& batch);
  void announce_next();
  bool end();
  void prepare_use(std::size_t before);
  void use_weights();
  RunParts parts();
  void make_up();
  Totals run_evaluation(bool scheduled, bool makes_up);
  void agree(OrderPoint point, const Orders& orders);
  void carry_out(const Orders& orders);

  const comm::Communicator& comm_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unique_ptr<RunFacts> facts_;
  std::unique_ptr<RunFiles> files_;
  Heartbeat heartbeat_;  // these two must outlive the trainer, which beats
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<RunRecord> record_;
  std::unique_ptr<CallbackList> callbacks_;  // must outlive the trainer, which writes to a callback's trace
  std::unique_ptr<Course> course_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<RunState> state_;  // of a run that trains, from build() on
  Loop loop_;
};

// The input range of Batch& that batches() returns.
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
  void advance() { open_ = session_.advance(batch_); }
  Session& session_;
  data::Batch batch_;
  bool open_ = true;
};

}  // namespace lockstep::train
