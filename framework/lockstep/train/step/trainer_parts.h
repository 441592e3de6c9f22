// The parts of a Trainer, in an order in which each part refers to earlier ones alone, and the step that they make
// together. Internal: trainer.h has no header of the parts, so that programs compile fast.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/guard/step_guard.h"
#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/runner/step_runner.h"
#include "lockstep/train/runner/totals.h"
#include "lockstep/train/state/trainer_state.h"
#include "lockstep/train/step/driver_trial.h"
#include "lockstep/train/step/evaluator.h"
#include "lockstep/train/step/step_votes.h"

namespace lockstep::train {

struct TrainerParts {
  TrainerParts(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
               std::vector<data::Field> fields, TrainerOptions options);
  // Other ranks may be in a step: tells them that this rank makes no more steps before it waits for them.
  ~TrainerParts() { engine.leave(); }
  TrainerParts(const TrainerParts&) = delete;
  TrainerParts& operator=(const TrainerParts&) = delete;

  const parallel::WorldLayout& world() const { return prepared.world(); }
  const TrainerOptions& options() const { return prepared.options(); }

  // Throws Error after MPI_Finalize, when shared memory is gone, and after an earlier failure, when other ranks are.
  void require_ranks() const;
  void check_rate(double learning_rate) const;  // throws Error unless it is finite and not negative
  // Trains the local batch; runs the step again if the guards request it.
  const Totals& run_step(const LocalBatch& local, parallel::StepStart start);

  // Trains batches of streams: each rank's own.
  const Totals& run_streamed(const data::Batch& batch, double learning_rate);

  // Called in a handler: tells the other ranks the error.
  void poison();
  // Runs `work` and poisons the communicator if it throws: the rank is then out of step with the other ranks.
  template <class Work>
  void or_poison(const Work& work) {
    try {
      work();
    } catch (...) {
      poison();
      throw;
    }
  }
  // The same for work between steps, which an AgreedError ends on all ranks alike.
  template <class Work>
  bool agreed_or_poison(const Work& work) {
    try {
      return work();
    } catch (const comm::AgreedError&) {
      throw;
    } catch (...) {
      poison();
      throw;
    }
  }

  PreparedModel prepared;
  DriverTrial driver;
  parallel::GradientEngine engine;
  // Makes progress in other communication while a call waits for all ranks: they may wait for that communication.
  std::function<void()> meanwhile;
  StepVotes votes;
  BatchFeed feed;
  StepRunner runner;
  Evaluator evaluator;
  TrainerState state;
  StepGuard guard;
  Totals totals;  // totals of the last step
  double last_weight = 1;

 private:
  void finish_update();
};

}  // namespace lockstep::train
