// Replicas of the rows of sharded tables that are used most: every rank has them, with the states of their rules, and
// updates them by the same sums as their owners do, so that they need not travel before a step. The rows are those used
// most in the first steps of a run, counted over all ranks. All ranks make the same calls; one thread. T is float or
// double. Throws Error where MPI fails.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lockstep/parallel/tables/all_to_all.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/row_words.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class HotRows {
 public:
  static constexpr std::uint64_t kCountedSteps = 8;

  // `rows`: the number of rows of all tables together. `store`, whose tables are sharded, outlives this; `waiting` is
  // called again and again while this waits. Collective; `comm` is duplicated.
  HotRows(const comm::Communicator& comm, const TableStore<T>& store, std::int64_t rows,
          const std::function<void()>& waiting);

  // Counts the uses of rows in a step, before rows are chosen.
  void count(std::size_t table, std::span<const std::int64_t> rows);
  // A step begins: chooses rows after the counted steps, and brings their values where they have changed otherwise than
  // by update(). Collective.
  void begin_step(std::uint64_t step);
  void forget() { fresh_ = false; }  // values of rows change by other means than a step

  // Rows of a table that this rank has as replicas, in rising order; they may be read once begin_step() has run.
  std::span<const std::int64_t> ids(std::size_t table) const { return tables_[table].ids; }
  // An element of ids(), by its index; part: see TableStore::Stored::width().
  T* row(std::size_t table, std::size_t index, int part = -1) {
    const auto p = static_cast<std::size_t>(std::int64_t{part} + 1);
    return tables_[table].parts[p].data() + static_cast<std::int64_t>(index) * store_[table].width(part);
  }

  // Starts to send the sums of this rank's hot rows to all other ranks; advance() goes on without waiting.
  void start(const std::vector<RowView<T>>& sums);
  bool advance() { return messages_.advance(); }  // whether anything moved
  bool done() const { return messages_.done(); }
  // Once done: calls visit(table, sums of replicas) for the rows of each owner.
  template <class Visit>
  void each_sum(const Visit& visit) const {
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const std::int64_t* words = rank == comm_.rank() ? nullptr : messages_.incoming(rank).data();
      for (std::size_t t = 0; words != nullptr && t < tables_.size(); ++t) {
        const RowView<T> view = take_rows<T>(words, store_[t].table().width);
        if (!view.empty()) visit(t, view);
      }
    }
  }

 private:
  struct OfTable {
    std::vector<std::int64_t> mine, ids;  // hot rows of this rank, and of other ranks
    std::vector<RawVector<T>> parts;      // replicas of `ids`: values, and each state
  };
  // Memory that is kept from step to step.
  struct Scratch {
    AllToAll::Words message;
    std::vector<std::size_t> found;  // hot rows of a table among its sums, by their indices there
  };
  void choose();
  void allocate();
  void refresh();
  void run_round();
  void append_sums(std::size_t table, const RowView<T>& sums);

  comm::Communicator comm_;
  const TableStore<T>& store_;
  std::int64_t rows_;
  const std::function<void()>& waiting_;
  AllToAll messages_;
  std::vector<std::unordered_map<std::int64_t, std::int64_t>> counts_;  // uses of rows on this rank, by table
  std::vector<OfTable> tables_;
  Scratch scratch_;
  bool chosen_ = false, fresh_ = true;
};

}  // namespace lockstep::parallel
