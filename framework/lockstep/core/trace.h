// Events of this rank for a time line: named spans on a few tracks. Any thread may add spans. It allocates memory, so
// it is for some steps of a run.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  // Memory: sums in the node. TableIds to RowGradients: messages of sparse tables.
  enum class Track : std::uint8_t { Step, Compute, Update, Wait, Memory, Network, TableIds, TableRows, RowGradients };
  struct Span {
    Track track;
    std::string name;
    Clock::time_point begin, end;
    std::int64_t step = 0;   // the step of the span, if it differs from that of the enclosing span; 0: unknown
    std::int64_t bytes = 0;  // of messages; 0: unknown or none
  };

  void add(Track track, std::string name, Clock::time_point begin, std::int64_t step = 0, std::int64_t bytes = 0) {
    const Clock::time_point end = Clock::now();
    const std::scoped_lock lock(mutex_);
    spans_.push_back({track, std::move(name), begin, end, step, bytes});
  }

  // Adds a span for its own lifetime, as "NAME STEP"; with a null trace it does nothing.
  class Scope {
   public:
    Scope(Trace* trace, Track track, std::string_view what, std::int64_t step)
        : trace_(trace), track_(track), what_(what), step_(step) {
      if (trace_ != nullptr) begin_ = Clock::now();
    }
    ~Scope() {
      if (trace_ != nullptr) trace_->add(track_, std::string(what_) + " " + std::to_string(step_), begin_, step_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Trace* trace_;
    Track track_;
    std::string_view what_;
    std::int64_t step_;
    Clock::time_point begin_{};
  };

  // Removes and returns all spans added so far.
  std::vector<Span> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace lockstep
