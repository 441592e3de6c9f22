// Measures the parts of a trainer's steps on this rank. Does not count a step in which a plan runs for the first or
// second time, because pages and caches are cold. One thread. The plans must outlive it.
#pragma once

#include <array>
#include <chrono>
#include <unordered_map>

#include "lockstep/plan/plan.h"
#include "lockstep/train/report/profile.h"

namespace lockstep::train {

class StepProfile {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Part : std::uint8_t { Input, Communication, Wait, Update };
  static constexpr std::size_t kParts = 4;

  explicit StepProfile(const kernels::Peaks& peaks) : peaks_(peaks) {}

  // Adds the time of its scope to a part; with a null profile, measures nothing.
  class Timer {
   public:
    Timer(StepProfile* profile, Part part) : profile_(profile), part_(part) {
      if (profile_ != nullptr) start_ = Clock::now();
    }
    ~Timer() {
      if (profile_ != nullptr) profile_->add(part_, Clock::now() - start_);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    StepProfile* profile_;
    Part part_;
    Clock::time_point start_;
  };

  void begin_step();
  void begin_run(plan::Plan& plan);  // before each run of a plan in the step
  void end_step();

  Profile result() const;

 private:
  struct Record {
    std::int64_t seen = 0;     // all runs, also those that are not measured
    std::int64_t in_step = 0;  // runs in the present step
    std::int64_t runs = 0;     // runs that `seconds` contains
    std::vector<double> seconds;
  };
  void add(Part part, Clock::duration time) {
    step_parts_[static_cast<std::size_t>(part)] += std::chrono::duration<double>(time).count();
  }
  double peak_of(const plan::PlanStep& step) const;

  kernels::Peaks peaks_;
  std::unordered_map<plan::Plan*, Record> plans_;
  bool cold_ = false;
  Clock::time_point start_;
  std::array<double, kParts> step_parts_{}, parts_{};
  std::int64_t steps_ = 0;
  double seconds_ = 0;
};

}  // namespace lockstep::train
