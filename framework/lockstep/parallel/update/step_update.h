// Finishes a step after its gradients were sent: checks the sums of all ranks, judges the step (by the whole gradient,
// if asked for), and updates bucket after bucket. A state machine that never waits: each call of advance() drives
// communication and goes as far as possible. One thread, the one that computes.
#pragma once

#include <cstdint>

#include "lockstep/parallel/control/step_state.h"
#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/guard/gradient_decision.h"
#include "lockstep/parallel/guard/memory_guard.h"
#include "lockstep/parallel/reduce/progress_driver.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/update/further_gradients.h"
#include "lockstep/parallel/update/tensor_norms.h"
#include "lockstep/parallel/update/update_scheduler.h"

namespace lockstep::parallel {

class StepUpdate {
 public:
  struct Options {
    bool hold_loss = false;     // a step whose loss is not finite is not applied
    bool local_weight = false;  // each rank updates by its own samples
    GradientDecision::Options gradient = {};
  };
  // All outlive this.
  struct Parts {
    ProgressDriver& driver;
    StepSums& sums;
    MemoryGuard& guard;
    ReductionScheduler& reductions;
  };
  // The sums that decide about a step; all may be empty (GradientDecision, TensorNorms).
  struct GradientSums {
    std::span<const double> squares = {}, noise = {};
    std::span<double> norms = {};
  };
  StepUpdate(const Parts& parts, const UpdateScheduler::Parts& update, const GradientSums& gradient,
             const Options& options);

  // Gradients beside those in buckets, which outlive this; set before the first step.
  void attach(FurtherGradients& further) { further_ = &further; }
  bool is_further_updated() const { return further_ == nullptr || further_->is_updated(); }

  void begin(const StepStart& start);
  // Call it before the control block of the last shard is sent, and after all updates of the previous step.
  void open();
  // Returns whether anything moved; throws Error of communication, or where ranks are not in the same step. The
  // function of GradientDecision::inspect_by() may call it while it waits: then it drives communication and updates
  // nothing.
  bool advance();
  void end();  // tells the store that values changed; late updates may still be due

  const StepState& state() const { return state_; }  // of the last step that was opened
  std::int64_t ended() const { return ended_; }      // number of the last update that was ended here; 0: none
  bool moves() const { return state_.posted || buckets_.late(); }  // whether advance() has anything to do
  UpdateScheduler& buckets() { return buckets_; }
  const UpdateScheduler& buckets() const { return buckets_; }
  GradientDecision& decision() { return decision_; }
  const GradientDecision& decision() const { return decision_; }

 private:
  // Of the step, by decision_. It stays at Underway if the caller's function throws: the step is then never applied.
  enum class Judgement : std::uint8_t { Due, Underway, Done };
  bool take_sums();
  bool decide();
  void judge();
  bool update_further();

  Parts parts_;
  Options options_;
  plan::ParameterStore& store_;
  UpdateScheduler buckets_;
  GradientDecision decision_;
  TensorNorms norms_;
  UpdateStep next_;  // of the step that has begun
  StepState state_;
  FurtherGradients* further_ = nullptr;
  Judgement judgement_ = Judgement::Due;
  std::int64_t ended_ = 0;
};

}  // namespace lockstep::parallel
