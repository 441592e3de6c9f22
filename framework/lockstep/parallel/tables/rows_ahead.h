// The rows of sharded tables that a step reads, where its ids are known before its passes: numbers of rows travel to
// their owners, each once for all passes, as early as the step before; the owners send the rows when the step begins,
// after the last update. A round of two messages for a step in place of one for each lookup. All ranks call announce()
// and begin() alike; one thread. T is float or double. Throws Error where MPI fails.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lockstep/core/trace.h"
#include "lockstep/parallel/tables/all_to_all.h"
#include "lockstep/parallel/tables/hot_rows.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/table_store.h"
#include "lockstep/parallel/tables/table_use.h"

namespace lockstep::parallel {

template <class T>
class RowsAhead {
 public:
  // `store`, whose tables are sharded, and `hot` (null: there are no hot rows) outlive this. `waiting` is called again
  // and again while this waits. Collective; `comm` is duplicated.
  RowsAhead(const comm::Communicator& comm, const TableStore<T>& store, HotRows<T>* hot,
            const std::function<void()>& waiting);

  // Starts to send the numbers of the rows that a step will read; `uses` are read during the call. Replaces what was
  // announced before.
  void announce(std::span<const TableUse> uses);
  // The announced step begins, in which this rank makes these lookups, and with `more` others: owners read their rows
  // and send them.
  void begin(std::span<const TableUse> uses, bool more);
  bool advance();   // goes on without waiting; whether anything moved
  void complete();  // waits until no message is under way
  // Writes the rows of a lookup that was announced for the step that has begun, once they are here; false: it was not,
  // or values have changed since.
  bool lookup(std::size_t table, std::span<const std::int64_t> rows, T* values);
  // Whether a rank makes other lookups than those announced in the step that has begun; equal on all ranks after
  // complete().
  bool asks_more() const { return here_.asks_more; }
  void forget() { now_.uses.clear(); }  // values change

  void note_in(Trace* trace) { spans_.trace = trace; }  // null: nowhere

 private:
  struct Use {
    std::size_t table, begin, count;  // its ids are Wanted::tables[table].ids[begin, begin + count)
  };
  struct Wanted {
    struct OfTable {
      RawVector<std::int64_t> ids;     // of all uses
      RawVector<std::uint32_t> index;  // of an id among the distinct ones
      RawVector<std::int64_t> rows;    // distinct, in rising order
      RawVector<std::int32_t> owners;  // of `rows`; negative: -1 - index of a hot row
    };
    std::vector<Use> uses;
    std::vector<OfTable> tables;
    std::vector<std::int64_t> lengths;  // words of the answers, by owner
  };
  // The rows of now_ and the flags of all ranks, once `complete`.
  struct Here {
    bool complete = true, asks_more = false;
    std::size_t found = 0;  // the use that was looked up last
    std::vector<RawVector<const T*>> rows;
  };
  // Memory that is kept from step to step; the places in messages, by owner.
  struct Scratch {
    IdSort sorter;
    std::vector<std::size_t> counts;
    std::vector<std::int64_t*> to;
    std::vector<const std::int64_t*> from;
  };
  struct Spans {
    Trace* trace = nullptr;
    Trace::Clock::time_point asked, answered;
  };
  void collect(std::span<const TableUse> uses);
  void ask(std::size_t table);
  void find_owners(std::size_t table);
  void answer(int rank, bool more);
  void locate();
  bool is_announced(std::span<const TableUse> uses) const;
  const Use* find(std::size_t table, std::span<const std::int64_t> rows);
  void wait(const AllToAll& messages);

  comm::Communicator to_owners_, from_owners_;
  const TableStore<T>& store_;
  HotRows<T>* hot_;
  const std::function<void()>& waiting_;
  AllToAll requests_, answers_;
  Wanted now_, next_;  // of the step that has begun, and of the step that is announced
  Here here_;
  Scratch scratch_;
  Spans spans_;
};

}  // namespace lockstep::parallel
