// Drives communication, by a thread of its own or by the calls of advance() that the computing thread makes between the
// steps of the plan. All calls come from the computing thread; `work` runs on one thread at a time.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/parallel/reduce/progress_thread.h"

namespace lockstep::parallel {

class ProgressDriver {
 public:
  // `work` does all that is possible without waiting and returns whether anything moved.
  explicit ProgressDriver(std::function<bool()> work) : work_(std::move(work)) {}

  // Starts or ends the thread. Call it while no communication is in progress.
  void use_thread(bool wanted) {
    if (wanted == has_thread()) return;
    thread_.reset();
    if (wanted) thread_ = std::make_unique<ProgressThread>(work_);
  }
  bool has_thread() const { return thread_ != nullptr; }

  // Without a thread: calls `work` and returns its result. With a thread: returns false, and throws the error that
  // ended the thread, if any.
  bool advance() {
    if (!thread_) return work_();
    thread_->rethrow();
    return false;
  }
  // Make the thread work from now on, or sleep. Without a thread they do nothing.
  void wake() {
    if (thread_) thread_->wake();
  }
  void sleep() {
    if (thread_) thread_->sleep();
  }

 private:
  std::function<bool()> work_;
  std::unique_ptr<ProgressThread> thread_;
};

}  // namespace lockstep::parallel
