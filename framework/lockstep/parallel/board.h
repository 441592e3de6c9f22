// Flags by which the ranks of a domain tell each other how far they are: one row of numbers per rank, in memory that
// all of them see, each row written by its rank alone. A number only grows (and may wrap). What a rank wrote before it
// raised a flag is seen by whoever saw the flag. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/shared_number.h"

namespace lockstep {

class Board {
 public:
  static std::size_t bytes(int flags) { return sizeof(Flag) * (static_cast<std::size_t>(flags) + 1); }
  // `rows` by local rank, zero at first, of bytes(flags) each.
  Board(std::span<const std::span<std::byte>> rows, int local_rank) : local_rank_(local_rank) {
    for (std::span<std::byte> row : rows) rows_.push_back(reinterpret_cast<Flag*>(row.data()) + 1);
  }

  int size() const { return static_cast<int>(rows_.size()); }
  void raise(int flag, std::uint32_t value) { at(local_rank_, flag).store(value, std::memory_order_release); }
  std::uint32_t value(int rank, int flag) const { return at(rank, flag).load(std::memory_order_acquire); }
  bool reached(int rank, int flag, std::uint32_t value) const {
    return static_cast<std::int32_t>(this->value(rank, flag) - value) >= 0;
  }
  // Both throw PeerError if a rank that has not come so far has failed: what it owes will never come.
  bool awaited(int rank, int flag, std::uint32_t value) const {
    if (reached(rank, flag, value)) return true;
    check_alive(rank);
    return false;
  }
  bool all_reached(int flag, std::uint32_t value) const {
    bool all = true;
    for (int r = 0; r < size(); ++r) all = awaited(r, flag, value) && all;  // one that is late hides no failure
    return all;
  }
  // Throws PeerError if one has, whatever its flags say.
  void check_alive() const {
    for (int r = 0; r < size(); ++r) check_alive(r);
  }
  // Tells the others not to wait for this rank.
  void fail() { raise(kFailed, 1); }

 private:
  static constexpr int kFailed = -1;
  void check_alive(int rank) const {
    if (value(rank, kFailed) != 0)
      throw PeerError(fmt::format("[reduction] local rank {} of this node has failed", rank));
  }
  struct alignas(64) Flag {  // one per cache line: a flag's readers do not slow another's writer
    SharedNumber<std::uint32_t> value;
  };
  SharedNumber<std::uint32_t>& at(int rank, int flag) const {
    return rows_[static_cast<std::size_t>(rank)][flag].value;
  }

  std::vector<Flag*> rows_;
  int local_rank_;
};

}  // namespace lockstep
