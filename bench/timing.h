// The time that a piece of work takes, for benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace lockstep {

// In seconds.
struct Timing {
  double median, min;
};

// Times `run` for `seconds` and at least five times, after one run that warms caches up.
template <class Run>
Timing time(double seconds, const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();
  std::vector<double> times;
  const auto began = Clock::now();
  while (times.size() < 5 || std::chrono::duration<double>(Clock::now() - began).count() < seconds) {
    const auto start = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], times.front()};
}

}  // namespace lockstep
