// A thread that drives communication while other threads compute. While it is awake it calls `work` again and again,
// with short pauses while nothing moves. An exception of `work` ends the thread, and rethrow() throws it
// again. One other thread calls wake(), sleep() and rethrow().
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

namespace lockstep::parallel {

class ProgressThread {
 public:
  explicit ProgressThread(std::function<bool()> work);  // `work` returns whether something moved; begins asleep
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  void wake();
  void sleep();  // takes effect after the present call of `work`
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
