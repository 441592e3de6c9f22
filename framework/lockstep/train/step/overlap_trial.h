// Whether a communication thread pays, measured on the first steps of a job: rank 0 takes the time of some steps
// without and some with it, and tells the others through the control block. One thread; alike on all ranks.
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
  // Whether the next step is one with the thread.
  bool tries_thread() const { return tries_thread(step_); }
  // What rank 0 says with the next step: the word, once its steps are measured.
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
