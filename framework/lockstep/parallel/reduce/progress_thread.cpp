#include "lockstep/parallel/reduce/progress_thread.h"

#include <chrono>
#include <utility>

namespace lockstep::parallel {
namespace {

// A message takes 0.1 ms or more, and the core should compute: a poll every 50 us costs about 2% of the core.
constexpr std::chrono::microseconds kPause{50};

}  // namespace

ProgressThread::ProgressThread(std::function<bool()> work) : work_(std::move(work)), thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  state_ = State::Ended;
  state_.notify_all();
  thread_.join();
}

void ProgressThread::wake() {
  State asleep = State::Asleep;
  if (state_.compare_exchange_strong(asleep, State::Awake)) state_.notify_all();
}

void ProgressThread::sleep() {
  State awake = State::Awake;
  state_.compare_exchange_strong(awake, State::Asleep);
}

void ProgressThread::rethrow() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void ProgressThread::run() {
  try {
    for (;;) {
      const State now = state_.load();
      if (now == State::Ended) return;
      if (now == State::Asleep) {
        state_.wait(State::Asleep);
      } else if (!work_()) {
        std::this_thread::sleep_for(kPause);
      }
    }
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
}

}  // namespace lockstep::parallel
