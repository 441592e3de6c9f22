// One message of any length from each rank to each other rank, without blocking: first the lengths travel, then the
// words. Rounds follow each other in the same order on all ranks; a round starts when the last one is complete. One
// thread. Throws Error where MPI fails.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tables/raw_vector.h"

namespace lockstep::parallel {

class AllToAll {
 public:
  // `comm` belongs to this object and to others whose rounds never overlap with its own; it outlives this object.
  explicit AllToAll(const comm::Communicator& comm);

  using Words = RawVector<std::int64_t>;
  // The words for `rank`, also for this rank; the caller changes them while no round is under way.
  Words& outgoing(int rank) { return memory_->outgoing[static_cast<std::size_t>(rank)]; }
  void clear();  // makes all outgoing messages empty
  void start();
  // The same if the lengths of all messages to this rank are known, by rank: only words travel.
  void start(std::span<const std::int64_t> lengths);
  bool advance();  // whether anything moved
  bool done() const { return phase_ == Phase::Done; }
  // The words from `rank` once done, until the next round.
  std::span<const std::int64_t> incoming(int rank) const {
    return rank == comm_.rank() ? memory_->outgoing[static_cast<std::size_t>(rank)]
                                : memory_->incoming[static_cast<std::size_t>(rank)];
  }
  // Bytes of the words to and from other ranks in the round that is done.
  std::int64_t sent_bytes() const { return bytes_of(memory_->outgoing); }
  std::int64_t received_bytes() const { return bytes_of(memory_->incoming); }

 private:
  enum class Phase : std::uint8_t { Done, Lengths, Words };
  // An abandoned message may outlive this object.
  struct Memory {
    std::vector<Words> outgoing, incoming;
    std::vector<std::int64_t> sent, received;  // lengths
  };
  void start_words();
  std::int64_t bytes_of(const std::vector<Words>& by_rank) const {
    std::size_t words = 0;
    for (std::size_t r = 0; r < by_rank.size(); ++r)
      words += r == static_cast<std::size_t>(comm_.rank()) ? 0 : by_rank[r].size();
    return static_cast<std::int64_t>(words * sizeof(std::int64_t));
  }

  const comm::Communicator& comm_;
  std::shared_ptr<Memory> memory_;
  std::vector<comm::Request> requests_;
  Phase phase_ = Phase::Done;
};

// Goes on with a round until it is done. `waiting` is called again and again while nothing moves, as other ranks may
// wait for what it drives.
void complete(AllToAll& messages, const std::function<void()>& waiting);

}  // namespace lockstep::parallel
