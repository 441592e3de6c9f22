// Drives communication on: by a thread of its own, or by the calls of advance() that the computing thread makes between
// the plan's steps. All calls come from the computing thread; `work` runs on one thread at a time.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/parallel/reduce/progress_thread.h"

namespace lockstep::parallel {

class ProgressDriver {
 public:
  // `work` moves what it can without waiting and says whether anything moved.
  explicit ProgressDriver(std::function<bool()> work) : work_(std::move(work)) {}

  // While nothing is under way.
  void use_thread(bool wanted) {
    if (wanted == has_thread()) return;
    thread_.reset();
    if (wanted) thread_ = std::make_unique<ProgressThread>(work_);
  }
  bool has_thread() const { return thread_ != nullptr; }

  // Works, and says whether anything moved; with a thread only throws the error that ended the thread, if any.
  bool advance() {
    if (!thread_) return work_();
    thread_->rethrow();
    return false;
  }
  // The thread, if there is one, works from now on; or sleeps.
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
