// Threads that work ahead of a caller, which receives the results in the order in which jobs were claimed. One thread
// at a time calls next(). `claim` runs under a lock, `produce` on many threads at once. next() throws the exception of
// either when its turn comes, and at every later call. Threads start at the first next() and end with this object.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace lockstep::data {

template <class Job, class Result>
class OrderedPrefetch {
 public:
  struct Options {
    std::function<std::optional<Job>()> claim;  // returns the next job; nullopt: no job is left
    std::function<Result(Job)> produce;
    int threads = 1;        // 0: next() does the work in the caller's thread
    std::size_t ahead = 2;  // limit of results that are ready or being made
  };

  explicit OrderedPrefetch(Options options) : options_(std::move(options)) {}
  ~OrderedPrefetch() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedPrefetch(const OrderedPrefetch&) = delete;
  OrderedPrefetch& operator=(const OrderedPrefetch&) = delete;

  std::optional<Result> next() {
    if (options_.threads == 0) {
      std::optional<Job> job = options_.claim();
      return job ? std::optional<Result>(options_.produce(std::move(*job))) : std::nullopt;
    }
    while (threads_.size() < static_cast<std::size_t>(options_.threads)) {
      threads_.emplace_back([this] { work(); });
    }
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return slots_.empty() ? ended_ : slots_.front().done; });
    if (slots_.empty()) return std::nullopt;
    if (slots_.front().error) std::rethrow_exception(slots_.front().error);  // the slot stays in front
    std::optional<Result> result = std::move(slots_.front().result);
    slots_.pop_front();
    lock.unlock();
    room_.notify_one();
    return result;
  }

 private:
  struct Slot {
    bool done = false;
    std::optional<Result> result;
    std::exception_ptr error;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [this] { return stop_ || ended_ || slots_.size() < options_.ahead; });
      if (stop_ || ended_) return;
      Slot& slot = slots_.emplace_back();  // the reference stays valid: only the front slot is removed, when done
      try {
        std::optional<Job> job = options_.claim();
        if (!job) {
          slots_.pop_back();
          finish();
          return;
        }
        lock.unlock();
        std::optional<Result> result = options_.produce(std::move(*job));
        lock.lock();
        slot.result = std::move(result);
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        slot.error = std::current_exception();
        finish();
      }
      slot.done = true;
      ready_.notify_one();
    }
  }
  void finish() {  // the caller holds the lock
    ended_ = true;
    room_.notify_all();
    ready_.notify_one();
  }

  Options options_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::deque<Slot> slots_;
  bool stop_ = false, ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::data
