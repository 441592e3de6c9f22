// Lookups in sharded tables: numbers of rows travel to the owners, and rows come back. All ranks take part in each
// round, though not for the same table: a rank whose passes have ended serves other ranks until all have ended. One
// thread. T is float or double. Throws Error where MPI fails.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lockstep/parallel/tables/all_to_all.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class RowService {
 public:
  // `store`, whose tables are sharded, outlives this. `waiting` is called again and again while a round waits, as other
  // ranks may wait for what it drives. Collective; `comm` is duplicated.
  RowService(const comm::Communicator& comm, const TableStore<T>& store, const std::function<void()>& waiting);

  void begin() { open_ = true; }    // the passes of a step or an evaluation begin, on all ranks
  void cancel() { open_ = false; }  // in place of end() where no rank has called lookup() since begin()
  // Writes rows of table `table` to `values`. Throws Error outside of begin() and end().
  void lookup(std::size_t table, std::span<const std::int64_t> rows, T* values);
  // This rank's passes have ended: serves the other ranks until theirs have ended too. Nothing if there was no begin().
  void end();

 private:
  bool round();  // sends requests_ and answers; whether any rank is still in its passes
  void answer(int rank);

  comm::Communicator comm_;
  const TableStore<T>& store_;
  const std::function<void()>& waiting_;
  AllToAll requests_, answers_;
  IdSort sorter_;
  std::vector<std::int64_t> lengths_;
  std::vector<const T*> next_;
  bool open_ = false;
};

}  // namespace lockstep::parallel
