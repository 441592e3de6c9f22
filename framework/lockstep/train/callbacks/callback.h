// Callbacks: objects that a run calls around its steps, evaluations, epochs and checkpoints. A session is a loop and an
// ordered list of callbacks (train/callbacks/callback_list.h has the order); a program adds its own with
// Session::add(). All ranks make the same callbacks, with the same needs; Session::build() compares them. The training
// thread calls each function on all ranks in the same order, so a callback may communicate. An Error of a callback ends
// the run, as an Error of a step does.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/train/report/callback_state.h"
#include "lockstep/train/runner/totals.h"
#include "lockstep/train/step/order_word.h"

namespace lockstep::train {

// The needs of a callback in each step, declared at construction: the control block is laid out before the first step.
struct CallbackNeeds {
  std::size_t sums = 0;          // number of f64 values that are summed over all ranks
  int votes = 0;                 // number of questions; all ranks learn whether any rank answers yes
  bool changes_batches = false;  // true: the program or the callback changes batches before they are trained
  bool settled_weights = false;  // true: after_step() reads weights, so late updates are finished before
  std::string state = {};        // name of its state in checkpoints, which no other callback has; empty: no state
};

// This rank's part in the control block of the step that begins. All ranks know the result after the step, so ranks
// agree in step t + 1 on a request that a callback makes after step t.
class StepVote {
 public:
  StepVote(std::span<double> sums, std::uint64_t& bits, int first_bit, int votes)
      : sums_(sums), bits_(bits), first_bit_(first_bit), votes_(votes) {}

  void add(std::size_t sum, double value);  // adds to a sum of the callback, which is zero at first; throws Error
  void say_yes(int question);               // answers a question of the callback with yes; throws Error

 private:
  std::span<double> sums_;
  std::uint64_t& bits_;
  int first_bit_, votes_;
};

// A step that is done. Epochs are counted from 1; `step` is the number of updates done.
struct StepEvent {
  std::int64_t step = 0, epoch = 1, step_in_epoch = 0;
  const Totals& totals;  // this step's totals over all ranks
  double learning_rate = 0;
  bool epoch_ends = false, run_ends = false;  // this step is the last one of its epoch, of the run
  std::uint64_t requests = 0;                 // requests of all ranks (train/monitor/requests.h)
  std::span<const double> sums = {};          // this callback's sums over all ranks
  std::uint64_t votes = 0;                    // bit i is set if any rank answered yes to this callback's question i
};

struct EpochEvent {
  std::int64_t step = 0, epoch = 1;
  bool whole = false;     // all samples of the epoch are trained; false: the run ends or stops within the epoch
  bool run_ends = false;  // all requested epochs or steps are done
  // In end_epoch(): the streams of all ranks have ended in this epoch, after its last step, whose StepEvent therefore
  // did not tell that the epoch ends.
  bool stream_ended = false;
  double learning_rate = 0;  // in end_epoch(): of the last batch
};

inline const std::map<std::string, Totals> kNoTotals;

struct EvaluationStart {
  std::int64_t samples = 0;  // of all evaluation sets
  bool makes_up = false;     // true: it was due when the run stopped, and runs before the next training step
};

struct EvaluationEvent {
  std::int64_t step = 0, epoch = 1;
  const Totals& totals;  // of the evaluation set
  // Of further evaluation sets (data::RunData::more_eval), by name.
  const std::map<std::string, Totals>& more = kNoTotals;
  double learning_rate = 0, seconds = 0;  // seconds: duration of the evaluation
  bool scheduled = false;                 // options or a callback ordered it; false: the program called evaluate()
  std::uint64_t requests = 0;             // requests of all ranks since the evaluation began
};

struct CheckpointEvent {
  std::int64_t step = 0;
  double write_seconds = 0;  // time of an earlier checkpoint from request to disk; 0: not known
};

struct RunEnd {
  std::int64_t step = 0;
  bool trained = true;  // false: the run had no step to train
};

// The orders of callbacks, which the loop carries out after it has called all callbacks. All ranks must give the same
// orders: a callback decides by values that all ranks know, such as sums, votes and totals. If ranks give different
// orders, all ranks throw an Error with the orders of two of them.
class Orders {
 public:
  // Orders an evaluation; has an effect only in make_up() and end_epoch(). A checkpoint of the same orders follows it.
  void evaluate() { evaluates_ = true; }
  // Orders a checkpoint of this step.
  void checkpoint() { saves_ = true; }
  // Orders a checkpoint unless the one of this step exists; the log contains the reason.
  void checkpoint(std::string reason) { reasons_.push_back(std::move(reason)); }
  // The same, and ends the run with exit status 75, which asks for another start with --resume auto.
  void stop(std::string reason) { reasons_.insert(reasons_.begin() + stops_++, std::move(reason)); }
  // The same with exit status 0: the run is complete before all epochs are done.
  void finish(std::string reason) {
    finishes_ = true;
    stop(std::move(reason));
  }

  bool evaluates() const { return evaluates_; }
  bool saves() const { return saves_; }
  bool stops() const { return stops_ > 0; }
  bool finishes() const { return finishes_; }
  const std::vector<std::string>& reasons() const { return reasons_; }  // reasons to stop, then those for a checkpoint
  // Returns the orders without their reasons, of which rank 0 may know more: bits of OrderBit; 0: none.
  std::uint64_t bits() const {
    return kEvaluates * evaluates_ + kSaves * saves_ + kSavesUnlessSaved * !reasons_.empty() + kStops * stops() +
           kFinishes * finishes_;
  }

 private:
  bool evaluates_ = false, saves_ = false, finishes_ = false;
  int stops_ = 0;  // number of reasons to stop
  std::vector<std::string> reasons_;
};

// The base class: each function does nothing, and a callback overrides those that it needs.
class Callback {
 public:
  explicit Callback(const CallbackNeeds& needs = {}) : needs_(needs) {}
  virtual ~Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  const CallbackNeeds& needs() const { return needs_; }

  // Only of a callback that declares a state. save_state() sets the values for a checkpoint: that of rank 0 is written.
  // load_state() gets them back on all ranks, before begin_run() if the run resumes from a checkpoint that has them,
  // and before rolled_back(); it does not communicate, and throws Error for values that it cannot use. A run resumed
  // from a checkpoint of the last step of an epoch does not call end_epoch() again for that epoch.
  virtual void save_state(CallbackState& /*state*/) {}
  virtual void load_state(const CallbackState& /*state*/) {}

  virtual void begin_run(std::int64_t /*step*/) {}  // at the end of Session::build(); `step` updates are done
  // Before each epoch, for the epoch that has ended or, after a resume, was begun: orders.evaluate() makes up an
  // evaluation that is still due; a callback that has finished the run before orders.finish() again.
  virtual void make_up(const EpochEvent& /*event*/, Orders& /*orders*/) {}
  virtual void begin_epoch(const EpochEvent& /*event*/) {}  // before an epoch, or the rest of one after a resume
  virtual void before_batch() {}                            // before the loader returns the next batch
  // Returns this rank's requests (train/monitor/requests.h); called before each step and after each batch of an
  // evaluation.
  virtual std::uint64_t requests() { return 0; }
  virtual void vote(StepVote& /*vote*/) {}  // before each step; once more if the step runs again
  virtual void after_step(const StepEvent& /*event*/, Orders& /*orders*/) {}
  virtual void before_evaluation(const EvaluationStart& /*start*/) {}
  virtual void evaluated(std::int64_t /*samples*/) {}  // after each batch, with the number of samples of all ranks
  virtual void after_evaluation(const EvaluationEvent& /*event*/, Orders& /*orders*/) {}
  virtual void end_epoch(const EpochEvent& /*event*/, Orders& /*orders*/) {}
  virtual void before_checkpoint(std::int64_t /*step*/) {}
  virtual void after_checkpoint(const CheckpointEvent& /*event*/) {}  // the state is copied; its writing begins
  virtual void rolled_back(std::int64_t /*step*/) {}  // memory was damaged: the run went back to this earlier step
  virtual void end_run(const RunEnd& /*end*/) {}      // at the end; the last checkpoint is on the disk

 private:
  CallbackNeeds needs_;
};

}  // namespace lockstep::train
