// Measures whether a communication thread is faster in the first steps of a job: rank 0 times some steps without the
// thread and some with it, and sends the decision in the control block. One thread; all ranks make the same calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep::train {

class OverlapTrial {
 public:
  enum Word : std::uint64_t { kUndecided, kSteps, kThread };

  void begin_step() { start_ = Clock::now(); }
  void end_step() {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (step_ >= kCold) (tries_thread(step_) ? with_ : without_).push_back(seconds);
    ++step_;
  }
  // Returns whether the next step uses the thread.
  bool tries_thread() const { return tries_thread(step_); }
  // Returns rank 0's word for the next step: the decision, once all steps are measured.
  std::uint64_t word() const {
    if (step_ < kCold + 2 * kEach) return kUndecided;
    return median(with_) < median(without_) ? kThread : kSteps;
  }
  double with() const { return median(with_); }
  double without() const { return median(without_); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kCold = 2, kEach = 4;  // steps
  static bool tries_thread(int step) { return step >= kCold + kEach; }
  static double median(std::vector<double> seconds) {
    if (seconds.empty()) return 0;
    std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
    return seconds[seconds.size() / 2];
  }

  Clock::time_point start_;
  int step_ = 0;
  std::vector<double> with_, without_;
};

}  // namespace lockstep::train
