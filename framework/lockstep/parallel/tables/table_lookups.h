// Lookups in sharded tables: by RowsAhead where the ids of a step are known before its passes, else by RowService. One
// thread. T is float or double. Throws Error where MPI fails.
#pragma once

#include <functional>
#include <span>

#include "lockstep/parallel/tables/row_service.h"
#include "lockstep/parallel/tables/rows_ahead.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class TableLookups {
 public:
  // The arguments outlive this; see RowsAhead. Collective.
  TableLookups(const comm::Communicator& comm, const TableStore<T>& store, HotRows<T>* hot,
               const std::function<void()>& waiting)
      : service_(comm, store, waiting), ahead_(comm, store, hot, waiting) {}

  // See TableEngine.
  void announce(std::span<const TableUse> uses) { ahead_.announce(uses); }
  void begin_lookups(std::span<const TableUse> uses, bool more) {
    ahead_.begin(uses, more);
    is_announced_ = true;
  }
  void begin_passes() {
    is_announced_ = false;
    service_.begin();
  }
  void lookup(std::size_t table, std::span<const std::int64_t> rows, T* values) {
    if (!ahead_.lookup(table, rows, values)) service_.lookup(table, rows, values);
  }
  void end_passes() {
    ahead_.complete();
    is_announced_ && !ahead_.asks_more() ? service_.cancel() : service_.end();
  }
  bool advance() { return ahead_.advance(); }  // goes on without waiting; whether anything moved
  void forget() { ahead_.forget(); }           // values change
  void note_in(Trace* trace) { ahead_.note_in(trace); }

 private:
  RowService<T> service_;
  RowsAhead<T> ahead_;
  bool is_announced_ = false;  // the lookups of these passes were announced
};

}  // namespace lockstep::parallel
