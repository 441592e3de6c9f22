// The time that a piece of work takes, for benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace lockstep {

// In seconds.
struct Timing {
  double median, min;
};

// The middle one of the values in ascending order, of an even number the mean of the two middle ones, of none 0.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Times `run` for `seconds` and at least five times, after one run that warms caches up. What `prepare` does before
// each run takes none of the run's time.
template <class Prepare, class Run>
Timing time_prepared(double seconds, const Prepare& prepare, const Run& run) {
  using Clock = std::chrono::steady_clock;
  prepare();
  run();
  std::vector<double> times;
  const auto began = Clock::now();
  while (times.size() < 5 || std::chrono::duration<double>(Clock::now() - began).count() < seconds) {
    prepare();
    const auto start = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return {median(times), *std::ranges::min_element(times)};
}

template <class Run>
Timing time(double seconds, const Run& run) {
  return time_prepared(
      seconds, [] {}, run);
}

}  // namespace lockstep
