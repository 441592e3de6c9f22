// How far a rank is, for watchdogs to see (train/monitor/watchdog.h): a row of numbers that the rank's computing thread
// alone writes and other threads and processes read. The row lies in the Heartbeat itself until attach() moves it into
// memory that the ranks of a node share. A beat is one store to a cache line of the rank's own, so there may be one for
// every node of a plan.
#pragma once

#include <cstdint>

#include "lockstep/core/shared_number.h"

namespace lockstep {

class Heartbeat {
 public:
  // Producing: the rank waits for samples that a program beside the training makes, at its own pace. Returned: the
  // program's part of a run is over on this rank, which makes no more collective calls.
  enum class Phase : std::uint32_t {
    Starting,
    Outside,
    Loading,
    Producing,
    Step,
    Evaluating,
    Saving,
    Ending,
    Returned
  };

  struct alignas(64) Row {
    SharedNumber<std::uint64_t> beats{0};  // grows with every action of this rank
    SharedNumber<std::uint64_t> waits{0};  // equals `beats` while the rank waits for other ranks
    // Phases entered so far: ranks enter the same ones in the same order, so the rank with the least number is last.
    SharedNumber<std::uint64_t> sequence{0};
    SharedNumber<std::int64_t> step{0};
    SharedNumber<std::int32_t> bucket{-1};  // of gradients: the one that was touched last in this step
    SharedNumber<Phase> phase{Phase::Starting};
    SharedNumber<std::int32_t> process{0};
    SharedNumber<std::int64_t> process_start{0};  // host/process_state.h
    SharedNumber<std::uint32_t> watches{0};       // grows while the process's watchdog is awake
    SharedNumber<std::int32_t> stack_signal{0};   // the signal that makes the process write its stack; 0: none
  };

  Heartbeat() = default;
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // `row` is zero and stays until detach(). Between steps.
  void attach(Row& row) { move_to(row); }
  void detach() { move_to(own_); }

  void beat() {
    ++beats_;
    row_->beats.store(beats_, std::memory_order_relaxed);
  }
  // Until the next beat this rank waits for other ranks, and a watchdog looks at those instead.
  void wait() { row_->waits.store(beats_, std::memory_order_relaxed); }
  // All ranks enter the same phases.
  void enter(Phase phase) {
    row_->sequence.store(++sequence_, std::memory_order_relaxed);
    row_->phase.store(phase, std::memory_order_relaxed);
    row_->bucket.store(-1, std::memory_order_relaxed);
    beat();
  }
  void enter_step(std::int64_t step) {
    row_->step.store(step, std::memory_order_relaxed);
    enter(Phase::Step);
  }
  void touch_bucket(int bucket) {
    row_->bucket.store(bucket, std::memory_order_relaxed);
    beat();
  }

 private:
  void move_to(Row& row) {
    row.step.store(row_->step.load());
    row.bucket.store(row_->bucket.load());
    row.phase.store(row_->phase.load());
    row.sequence.store(sequence_);
    row.beats.store(++beats_);
    row_ = &row;
  }

  Row own_;
  Row* row_ = &own_;
  std::uint64_t beats_ = 1, sequence_ = 0;  // of this thread alone
};

}  // namespace lockstep
