// The exchange of one step's row gradients: open partial sums (parallel/tree) of all ranks go to the owners of the
// rows, which add them in the tree's order. A state machine that never waits. One thread. T is float or double. Throws
// Error where MPI fails.
#pragma once

#include <vector>

#include "lockstep/parallel/tables/all_to_all.h"
#include "lockstep/parallel/tables/row_owners.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::parallel {

template <class T>
class RowExchange {
 public:
  // By open partial sum of this rank, then by table.
  using Partials = std::vector<std::vector<RowSet<T>>>;
  // `widths`: elements of a row, by table. Collective; `comm` is duplicated.
  RowExchange(const comm::Communicator& comm, const WorldLayout& world, const RowOwners& owners,
              std::vector<std::int64_t> widths);

  // Starts to send the first open partial sums of `mine`; they may change after the call. A rank alone takes them over.
  void start(Partials& mine);
  bool advance();  // whether anything moved
  bool done() const { return phase_ == Phase::Done; }
  // By table: the sums of the rows that this rank owns, once done; until the next start().
  const std::vector<RowSet<T>>& sums() const { return operands_[0]; }

 private:
  enum class Phase : std::uint8_t { Done, Sending };
  std::size_t words_of(std::size_t table, std::int64_t rows) const;
  void pack(const Partials& mine, std::size_t group);
  void unpack();

  comm::Communicator comm_;
  RowOwners owners_;
  std::vector<std::int64_t> widths_;
  std::vector<std::size_t> partials_;  // number of open partial sums, by rank
  std::vector<TreeMerge> merges_;
  AllToAll messages_;
  Partials operands_;  // the open partial sums of all ranks
  RowSet<T> scratch_;
  Phase phase_ = Phase::Done;
};

}  // namespace lockstep::parallel
