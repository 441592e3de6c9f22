// What happened when on this rank, for a time line: named spans on a few tracks. Threads may add at once; it allocates,
// so it is for some steps of a run.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Track : std::uint8_t { Compute, Wait, Memory, Network };  // Memory: sums in the node
  struct Span {
    Track track;
    std::string name;
    Clock::time_point begin, end;
  };

  void add(Track track, std::string name, Clock::time_point begin) {
    const Clock::time_point end = Clock::now();
    const std::scoped_lock lock(mutex_);
    spans_.push_back({track, std::move(name), begin, end});
  }
  // What was added until now, taken out.
  std::vector<Span> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace lockstep
