// The gate at which the next forward pass waits until a bucket has its updated values: with late updates a bucket may
// still be in flight when a step ends. All other waits for parts of the step are here too; each drives the step while
// it waits. One thread, the one that computes.
#pragma once

#include "lockstep/core/backoff.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/parallel/step/step_timer.h"
#include "lockstep/parallel/update/step_update.h"

namespace lockstep::parallel {

class UpdateGate {
 public:
  // `may_be_late`: steps may end before their updates. `heartbeat` shows this rank's progress to a watchdog; null: no
  // watchdog. All references outlive the gate.
  UpdateGate(StepUpdate& update, StepTimer& timer, Heartbeat* heartbeat, bool may_be_late)
      : update_(update),
        timer_(timer),
        heartbeat_(heartbeat != nullptr ? *heartbeat : own_heartbeat_),
        may_be_late_(may_be_late) {}
  UpdateGate(const UpdateGate&) = delete;
  UpdateGate& operator=(const UpdateGate&) = delete;

  // Returns when the values of the bucket may be read. In a step whose control block was sent they may be read until
  // the end of the step.
  void pass(int bucket);
  void pass_all();
  // Whether this step may end before its updates. It may not if they depend on the whole gradient, nor if the step is
  // held back, as the search for the cause needs all ranks at rest.
  bool is_late_allowed() const {
    return may_be_late_ && !update_.decision().waits_for_gradient() && update_.state().verdict == StepVerdict::Apply;
  }
  template <class Done>
  void wait_until(const Done& done) {
    for (Backoff wait; !done();) {
      if (update_.advance()) {
        wait = {};
        heartbeat_.beat();
      } else {
        heartbeat_.wait();
        wait.pause();
      }
    }
    heartbeat_.beat();
  }
  Heartbeat& heartbeat() { return heartbeat_; }

 private:
  StepUpdate& update_;
  StepTimer& timer_;
  Heartbeat own_heartbeat_;  // without a watchdog
  Heartbeat& heartbeat_;
  bool may_be_late_;
};

}  // namespace lockstep::parallel
