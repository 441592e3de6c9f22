// How a thread waits for memory that another thread or process writes: it spins for a moment, as an answer within a
// microsecond is common, then gives its core away, since a peer may need it to answer, and at last sleeps.
#pragma once

#include <chrono>
#include <thread>

namespace lockstep {

class Backoff {
 public:
  // One pause between two looks at the memory.
  void pause() {
    if (count_ < kSpins) {
      relax();
    } else if (count_ < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    ++count_;
  }

 private:
  // With more ranks than cores every spin keeps a peer from answering: few of them (about 2 us), then yields.
  static constexpr int kSpins = 64, kYields = 20'000;
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
  int count_ = 0;
};

}  // namespace lockstep
