// Flags by which the ranks of a domain show each other their progress: one row of numbers per rank, in memory that all
// these ranks see. A rank writes its own row alone. A number only grows (and may wrap). A rank that sees a flag also
// sees everything that the other rank wrote before it raised the flag. A rank that ends sets a flag, so that the other
// ranks stop waiting for it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/shared_number.h"

namespace lockstep::parallel {

class SharedFlags {
 public:
  static std::size_t bytes(int flags) { return sizeof(Flag) * (static_cast<std::size_t>(flags) + 1); }
  // `rows` is by local rank, zero at first, bytes(flags) each. `unit` is the unit of the count in leave(), for
  // messages.
  SharedFlags(std::span<const std::span<std::byte>> rows, int local_rank, std::string_view unit = "update")
      : local_rank_(local_rank), unit_(unit) {
    for (std::span<std::byte> row : rows) rows_.push_back(reinterpret_cast<Flag*>(row.data()) + 1);
  }

  int size() const { return static_cast<int>(rows_.size()); }
  void raise(int flag, std::uint32_t value) { at(local_rank_, flag).store(value, std::memory_order_release); }
  std::uint32_t value(int rank, int flag) const { return at(rank, flag).load(std::memory_order_acquire); }
  bool reached(int rank, int flag, std::uint32_t value) const {
    return static_cast<std::int32_t>(this->value(rank, flag) - value) >= 0;
  }
  // Whether a rank, or all ranks, have raised the flag to `value`. Both throw if a missing rank never will: PeerError
  // if it has failed, Error if it has left. If this rank itself has not reached `value`, all_reached() does not throw
  // for a rank that has left.
  bool awaited(int rank, int flag, std::uint32_t value) const {
    if (reached(rank, flag, value)) return true;
    check_not_left(rank, flag, value);
    check_not_failed(rank, flag, value);
    return false;
  }
  bool all_reached(int flag, std::uint32_t value) const {
    bool all = true;
    for (int r = 0; r < size(); ++r) all = reached(r, flag, value) && all;
    if (all) return true;
    // Look for ranks that have left first: another rank may have failed because one left.
    const bool waits = reached(local_rank_, flag, value);
    for (int r = 0; waits && r < size(); ++r) check_not_left(r, flag, value);
    for (int r = 0; r < size(); ++r) check_not_failed(r, flag, value);
    return false;
  }
  // Throws PeerError if a rank has failed, whatever its flags say.
  void check_alive() const {
    for (int r = 0; r < size(); ++r) {
      if (end_of(r) == End::Failed) throw_failed(r);
    }
  }
  // Throws Error if a rank has left, whatever its flags say.
  void check_nobody_left() const {
    for (int r = 0; r < size(); ++r) {
      if (const End end = end_of(r); has_left(end)) throw_left(r, end);
    }
  }
  bool somebody_left() const {
    for (int r = 0; r < size(); ++r) {
      if (has_left(end_of(r))) return true;
    }
    return false;
  }
  // Tells the other ranks not to wait for this rank, which has failed. The first of fail() and leave() counts.
  void fail() {
    if (end_of(local_rank_) == End::None) raise(kEnd, static_cast<std::uint32_t>(End::Failed));
  }
  // Tells the other ranks that this rank ends and that they need not wait for it. `rank` is its number in the job,
  // `count` the number of updates (or calls) that it has made; `failing` means that an error of its own ends it.
  void leave(int rank, std::int64_t count, bool failing) {
    leave_as(failing ? End::LeftFailing : End::Left, rank, count);
  }
  // The same for a rank that gives up calls which it has made and not completed.
  void leave_incomplete(int rank, std::int64_t count) { leave_as(End::LeftIncomplete, rank, count); }

 private:
  static constexpr int kEnd = -1;
  enum class End : std::uint32_t { None, Failed, Left, LeftIncomplete, LeftFailing };
  struct alignas(64) Flag {  // one per cache line, so that readers of a flag do not slow the writer of another
    SharedNumber<std::uint32_t> value;
    SharedNumber<std::int32_t> rank;  // of kEnd
    SharedNumber<std::int64_t> count;
  };

  End end_of(int rank) const { return static_cast<End>(value(rank, kEnd)); }
  void leave_as(End how, int rank, std::int64_t count) {
    if (end_of(local_rank_) != End::None) return;
    Flag& end = rows_[static_cast<std::size_t>(local_rank_)][kEnd];
    end.rank.store(rank, std::memory_order_relaxed);
    end.count.store(count, std::memory_order_relaxed);
    raise(kEnd, static_cast<std::uint32_t>(how));
  }
  static bool has_left(End end) { return end != End::None && end != End::Failed; }
  // A rank raises its flags before it ends, so the flag is read again after the end was seen.
  void check_not_left(int rank, int flag, std::uint32_t value) const {
    const End end = end_of(rank);
    if (has_left(end) && !reached(rank, flag, value)) throw_left(rank, end);
  }
  void check_not_failed(int rank, int flag, std::uint32_t value) const {
    if (end_of(rank) == End::Failed && !reached(rank, flag, value)) throw_failed(rank);
  }
  [[noreturn]] static void throw_failed(int rank) {
    throw PeerError(formatted("[reduction] local rank {} of this node has failed", rank));
  }
  [[noreturn]] void throw_left(int local_rank, End end) const {
    const Flag& row = rows_[static_cast<std::size_t>(local_rank)][kEnd];
    const std::string who =
        formatted("[reduction] rank {} has left after {} {}", row.rank.load(std::memory_order_relaxed), unit_,
                  row.count.load(std::memory_order_relaxed));
    if (end == End::LeftFailing) throw PeerError(who + ", because of an error, which that rank reports");
    if (end == End::LeftIncomplete)
      throw Error(who +
                  ", while later calls were not complete, and this rank waits for it: expected that each rank "
                  "waits for all its handles before it destroys the engine");
    throw Error(formatted(
        "{}, and this rank waits for it: expected the same number of calls, in the same order, on all ranks{}", who,
        unit_ == "update" ? " (a rank whose stream has ended goes on with Trainer::step(std::nullopt, rate))" : ""));
  }
  SharedNumber<std::uint32_t>& at(int rank, int flag) const {
    return rows_[static_cast<std::size_t>(rank)][flag].value;
  }

  std::vector<Flag*> rows_;
  int local_rank_;
  std::string_view unit_;
};

}  // namespace lockstep::parallel
