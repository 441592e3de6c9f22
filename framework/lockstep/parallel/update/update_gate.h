// Where the next step's forward pass waits for a bucket's values to be those of this step: with late updates buckets
// may still be on their way when a step ends. Also every other wait for the step's parts, driving them meanwhile. One
// thread, the one that computes.
#pragma once

#include "lockstep/core/backoff.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/parallel/step_timer.h"
#include "lockstep/parallel/step_update.h"

namespace lockstep::parallel {

class UpdateGate {
 public:
  // `may_be_late`: steps may end before their updates do. `heartbeat` tells a watchdog how far this rank is; null: none
  // is told. All outlive this.
  UpdateGate(StepUpdate& update, StepTimer& timer, Heartbeat* heartbeat, bool may_be_late)
      : update_(update),
        timer_(timer),
        heartbeat_(heartbeat != nullptr ? *heartbeat : own_heartbeat_),
        may_be_late_(may_be_late) {}
  UpdateGate(const UpdateGate&) = delete;
  UpdateGate& operator=(const UpdateGate&) = delete;

  // Returns once the bucket's values may be read. In a step whose control block has left they may until its end.
  void pass(int bucket);
  void pass_all();
  // Whether this step may end before its updates do. Not if the whole gradient decides over them, nor if the step is
  // held back, as the cause is then looked for with all ranks at rest.
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
