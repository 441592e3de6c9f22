// A training run of a program: data, loaders, trainer, schedule, log, metrics, progress, checkpoints and resuming, as
// its options say. The program keeps the loop:
//
//   session.build(network, forward);
//   while (session.next_epoch()) {
//     for (data::Batch& batch : session.batches())
//       session.report(session.trainer().step(batch, session.learning_rate()));
//     session.finish_epoch();
//   }
//
// What happens around steps, evaluations, epochs and checkpoints is an ordered list of callbacks
// (train/callbacks/callback_list.h), to which a program adds its own: session.add<EarlyStop>(patience).
//
// All ranks make the same calls, from one thread. What all ranks can know before the first step fails on all of them
// together.
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

namespace lockstep::train {

class CallbackList;
class Checkpoints;
class Course;
class RunFiles;
class Watchdog;
struct RunFacts;
struct RunRecord;

class Session {
 public:
  // `program` are the program's own options ("depth"), which ranks must agree on and checkpoints remember: the
  // text of a JSON object ({"depth": 20}).
  // The data set is that of `catalogue` which the options name.
  Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
          data::Catalogue catalogue);
  ~Session();

  const Options& options() const;
  const comm::Communicator& comm() const { return comm_; }
  const data::DatasetPair& data() const;

  // Adds a callback of the program's own; before build(). All ranks add the same ones.
  Callback& add(std::unique_ptr<Callback> callback);
  template <class C, class... Arguments>
  C& add(Arguments&&... arguments) {
    return static_cast<C&>(add(std::make_unique<C>(std::forward<Arguments>(arguments)...)));
  }

  // Compiles the model and loads the checkpoint that --resume asks for. The inputs of `model` are "image" and "label".
  Trainer& build(const nn::Module& module, const plan::ModelFunction& model);
  Trainer& trainer() { return *trainer_; }

  // False when the epochs or steps asked for are done, or the run was asked to stop (train/monitor/requests.h); then
  // the step's state is on disk. A resumed run begins in mid-epoch.
  bool next_epoch();
  // The rest of this epoch's batches, up to --max-steps.
  class Batches;
  Batches batches();
  double learning_rate() const { return loop_.rate; }  // for the batch at hand
  void report(const Totals& step);  // of the batch at hand: metrics, progress, checkpoint if one is due
  void finish_epoch();              // evaluation and checkpoint if they are due
  Totals evaluate();
  // What the program ends with: 75 (train/monitor/requests.h) if it was asked to stop and there is something left to
  // do, else 0.
  int status() const;
  // Until all ranks are here, which a watchdog sees as waiting.
  void wait_for_others();

 private:
  // Where the program's loop is.
  struct Loop {
    std::int64_t epoch = -1, first_step = 0;  // the epoch at hand, from 0, and the update before its first one
    double rate = 0;
    bool stopped = false, finished = false;  // finished: there is nothing left to go on with
    std::optional<std::int64_t> resumed_step = {};
  };
  bool done() const;
  bool advance(data::Batch& batch);
  bool end();
  void save_checkpoint();
  bool roll_back();
  Totals run_evaluation(bool scheduled, bool makes_up);
  void carry_out(const Orders& orders);

  const comm::Communicator& comm_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unique_ptr<RunFacts> facts_;
  std::unique_ptr<RunFiles> files_;
  Heartbeat heartbeat_;  // these two before the trainer, which beats
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<RunRecord> record_;
  std::unique_ptr<CallbackList> callbacks_;  // before the trainer, which notes in a trace of theirs
  std::unique_ptr<Course> course_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Checkpoints> checkpoints_;
  Loop loop_;
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
  void advance() { open_ = session_.advance(batch_); }
  Session& session_;
  data::Batch batch_;
  bool open_ = true;
};

}  // namespace lockstep::train
