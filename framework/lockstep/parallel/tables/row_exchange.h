// The exchange of one step's row gradients: open partial sums (parallel/tree) of all ranks go to the owners of the
// rows, which add them in the tree's order; of a table by number and row, or as one block of all rows (row_block.h),
// with the same bits. A state machine that never waits. One thread. T is float or double. Throws Error where MPI fails.
#pragma once

#include <vector>

#include "lockstep/parallel/tables/all_to_all.h"
#include "lockstep/parallel/tables/row_block.h"
#include "lockstep/parallel/tables/row_owners.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::parallel {

template <class T>
class RowExchange {
 public:
  // By open partial sum of this rank, then by table.
  using Partials = std::vector<std::vector<RowSet<T>>>;
  // `sizes`: by table. Collective; `comm` is duplicated.
  RowExchange(const comm::Communicator& comm, const WorldLayout& world, const RowOwners& owners,
              std::vector<TableSize> sizes);

  // From the next start() on, a table's rows travel as blocks; the same on all ranks.
  void use_blocks(std::size_t table) { blocks_[table] = true; }
  // Starts to send the first open partial sums of `mine`; they may change after the call. A rank alone takes them over.
  void start(Partials& mine);
  bool advance();  // whether anything moved
  bool done() const { return phase_ == Phase::Done; }
  // By table: the sums of the rows that this rank owns, once done; until the next start().
  const std::vector<RowView<T>>& sums() const { return sums_; }
  std::int64_t sent_bytes() const { return messages_.sent_bytes(); }  // in the exchange that is done
  std::size_t operands() const { return operands_.size(); }           // number of open partial sums of all ranks

 private:
  enum class Phase : std::uint8_t { Done, Sending };
  // An open partial sum of a rank, or the sum of several: rows that this rank owns.
  struct Operand {
    RowView<T> rows;
    const std::int64_t* block = nullptr;
    // Memory of the rows or the block, unless it is a message.
    RowSet<T> own_rows = {};
    AllToAll::Words own_block = {};
  };
  // The places behind the numbers and rows that are written for an owner.
  struct Cursor {
    std::size_t count = 0;
    std::int64_t* ids = nullptr;
    T* rows = nullptr;
  };
  // Memory that is kept from step to step.
  struct Scratch {
    RowSet<T> rows;
    std::vector<Cursor> cursors;
    std::vector<BlockWriter<T>> writers;
  };
  std::size_t first_of(int rank) const { return first_operand_[static_cast<std::size_t>(rank)]; }
  const RowDeal& my_deal(std::size_t table) const { return deals_[static_cast<std::size_t>(owners_.my_group)][table]; }
  void deal_out(const RowSet<T>& set, std::size_t group, std::size_t table, Operand& own);
  void deal_out_block(const RowSet<T>& set, std::size_t group, std::size_t table, Operand& own);
  void unpack(int rank);
  void add(Operand& sum, const Operand& more, std::size_t table, bool last);

  comm::Communicator comm_;
  RowOwners owners_;
  std::vector<TableSize> sizes_;
  std::vector<std::vector<RowDeal>> deals_;  // by group and table
  std::vector<std::size_t> first_operand_;   // by rank, and behind the last one
  std::vector<TreeMerge> merges_;
  AllToAll messages_;
  std::vector<std::vector<Operand>> operands_;  // open partial sums of all ranks, by table
  std::vector<bool> blocks_;                    // by table
  std::vector<RowView<T>> sums_;
  Scratch scratch_;
  Phase phase_ = Phase::Done;
};

}  // namespace lockstep::parallel
