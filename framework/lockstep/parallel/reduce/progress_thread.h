// A thread that drives communication while others compute: it calls `work` again and again as long as it is awake,
// pausing ever longer while nothing moves, and sleeps otherwise. What `work` throws ends it and is thrown again by the
// next rethrow(). wake(), sleep() and rethrow() come from one other thread.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

namespace lockstep::parallel {

class ProgressThread {
 public:
  explicit ProgressThread(std::function<bool()> work);  // whether something moved
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  void wake();
  void sleep();  // from the next call of `work` on
  void rethrow() const;

 private:
  enum class State : int { Asleep, Awake, Ended };
  void run();

  std::function<bool()> work_;
  std::atomic<State> state_{State::Asleep};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // once failed_
  std::thread thread_;
};

}  // namespace lockstep::parallel
