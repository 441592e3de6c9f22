// What a run calls around its steps, evaluations, epochs and checkpoints. A session is a loop and an ordered list of
// callbacks (train/callbacks/callback_list.h tells the order); a program adds its own with Session::add(). All ranks
// make the same callbacks, and each function is called on all ranks in the same order, by the thread that trains, so a
// callback may communicate. An Error that a callback throws ends the run as an error of the step does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/train/step/totals.h"

namespace lockstep::train {

// What a callback needs of each step. Declared at construction: the control block is laid out before the first step.
struct CallbackNeeds {
  std::size_t sums = 0;  // f64 numbers that are added up over all ranks
  int votes = 0;         // questions of which all ranks learn whether any rank says yes
  bool settled_weights =
      false;  // after_step() reads weights: updates that are still under way between nodes are finished before
};

// What this rank says in the control block of the step that begins. All ranks know the result after the step, so what a
// callback asks for after step t is agreed on in step t + 1.
class StepVote {
 public:
  StepVote(std::span<double> sums, std::uint64_t& bits, int first_bit, int votes)
      : sums_(sums), bits_(bits), first_bit_(first_bit), votes_(votes) {}

  void add(std::size_t sum, double value);  // to one of the callback's sums, which are zero at first
  void say_yes(int question);

 private:
  std::span<double> sums_;
  std::uint64_t& bits_;
  int first_bit_, votes_;
};

// Epochs are counted from 1, steps are updates done.
struct StepEvent {
  std::int64_t step = 0, epoch = 1, step_in_epoch = 0;
  const Totals& totals;  // of this step, over all ranks
  double learning_rate = 0;
  bool epoch_ends = false, run_ends = false;  // with this step
  std::uint64_t requests = 0;                 // of any rank (train/monitor/requests.h)
  std::span<const double> sums = {};          // of this callback, over all ranks
  std::uint64_t votes = 0;                    // of this callback: bit i is set if any rank said yes to question i
};

struct EpochEvent {
  std::int64_t step = 0, epoch = 1;
  bool whole = false;     // no samples of the epoch are left; false: the run ends or stops within it
  bool run_ends = false;  // all epochs or steps asked for are done
};

struct EvaluationStart {
  std::int64_t samples = 0;
  bool makes_up = false;  // it was due when the run stopped, and is made before anything is trained
};

struct EvaluationEvent {
  std::int64_t step = 0, epoch = 1;
  const Totals& totals;
  double learning_rate = 0, seconds = 0;  // seconds: what it took
  bool scheduled = false;                 // by the run's options or a callback; false: the program called evaluate()
  std::uint64_t requests = 0;             // of any rank, since the evaluation began
};

struct CheckpointEvent {
  std::int64_t step = 0;
  double write_seconds = 0;  // what writing an earlier one took, until it was on the disk; 0: not known
};

struct RunEnd {
  std::int64_t step = 0;
  bool trained = true;  // false: there was nothing to train
};

// What the loop does when all callbacks have been called. All ranks must give the same orders: a callback decides by
// what all ranks know, as sums, votes and totals.
class Orders {
 public:
  // Of make_up() and end_epoch(); elsewhere it has no effect. A checkpoint of the same orders comes after it.
  void evaluate() { evaluates_ = true; }
  void checkpoint() { saves_ = true; }
  // Unless the checkpoint of this step exists; the log says why.
  void checkpoint(std::string reason) { reasons_.push_back(std::move(reason)); }
  // The same, and the run ends; a start with --resume auto goes on, and the program's status asks for one (75).
  void stop(std::string reason) { reasons_.insert(reasons_.begin() + stops_++, std::move(reason)); }
  // The same with status 0: the run has come to its end, before all epochs are done.
  void finish(std::string reason) {
    finishes_ = true;
    stop(std::move(reason));
  }

  bool evaluates() const { return evaluates_; }
  bool saves() const { return saves_; }
  bool stops() const { return stops_ > 0; }
  bool finishes() const { return finishes_; }
  const std::vector<std::string>& reasons() const { return reasons_; }  // to stop, then for a checkpoint

 private:
  bool evaluates_ = false, saves_ = false, finishes_ = false;
  int stops_ = 0;  // reasons to stop
  std::vector<std::string> reasons_;
};

class Callback {
 public:
  explicit Callback(const CallbackNeeds& needs = {}) : needs_(needs) {}
  virtual ~Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  const CallbackNeeds& needs() const { return needs_; }

  virtual void begin_run(std::int64_t /*step*/) {}  // at the end of Session::build(), `step` updates being done
  // Before each epoch, of the one that has ended or, after a resume, was begun: orders.evaluate() makes up an
  // evaluation that is still due; other orders have no effect.
  virtual void make_up(const EpochEvent& /*event*/, Orders& /*orders*/) {}
  virtual void begin_epoch(const EpochEvent& /*event*/) {}  // or the rest of one
  virtual void before_batch() {}                            // the loader is asked for the next one
  // Bits of this rank (train/monitor/requests.h), asked for before each step and after each batch of an evaluation.
  virtual std::uint64_t requests() { return 0; }
  virtual void vote(StepVote& /*vote*/) {}  // before each step; again if the step is run again
  virtual void after_step(const StepEvent& /*event*/, Orders& /*orders*/) {}
  virtual void before_evaluation(const EvaluationStart& /*start*/) {}
  virtual void evaluated(std::int64_t /*samples*/) {}  // after each batch: how many samples all ranks have reached
  virtual void after_evaluation(const EvaluationEvent& /*event*/, Orders& /*orders*/) {}
  virtual void end_epoch(const EpochEvent& /*event*/, Orders& /*orders*/) {}
  virtual void before_checkpoint(std::int64_t /*step*/) {}
  virtual void after_checkpoint(const CheckpointEvent& /*event*/) {}  // it is copied, and written from now on
  virtual void rolled_back(std::int64_t /*step*/) {}  // memory was damaged: the run is at this earlier step again
  virtual void end_run(const RunEnd& /*end*/) {}      // the last checkpoint is on the disk

 private:
  CallbackNeeds needs_;
};

}  // namespace lockstep::train
