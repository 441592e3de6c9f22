// Waits for memory that another thread or process writes: first it spins, as an answer within a microsecond is common;
// then it yields the core, as a peer may need it to answer; at last it sleeps. One thread per object.
#pragma once

#include <chrono>
#include <thread>

namespace lockstep {

class Backoff {
 public:
  // Pauses once, between two reads of the memory.
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
  // With more ranks than cores every spin delays a peer: spins only about 2 us, then yields.
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
