// The row gradients of one step, from the nodes of this rank's shards to the sums over all ranks, which the owners of
// the rows have. It sends rows as soon as the last shard's are complete, and goes on in advance(). One thread. T is
// float or double. Throws Error where MPI fails.
#pragma once

#include "lockstep/core/trace.h"
#include "lockstep/parallel/tables/block_choice.h"
#include "lockstep/parallel/tables/hot_rows.h"
#include "lockstep/parallel/tables/row_collector.h"
#include "lockstep/parallel/tables/row_exchange.h"
#include "lockstep/parallel/tables/row_squares.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class RowReduction {
 public:
  // `store` and `hot` (null: there are no hot rows) outlive this; `waiting` is called again and again while this waits.
  // Collective.
  RowReduction(const comm::Communicator& comm, const WorldLayout& world, const TableStore<T>& store, HotRows<T>* hot,
               TableExchange form, const std::function<void()>& waiting);

  void begin_step();
  void begin_shard() { collector_.begin_shard(); }
  void begin_pass(int gradients, bool last) { collector_.begin_pass(gradients, last); }
  void add(std::size_t number, std::span<const std::int64_t> rows, const T* gradient);
  void end_shard();
  // See FurtherGradients.
  void open(bool squares);
  bool advance();
  bool is_reduced() const { return phase_ >= Phase::Reduced; }
  double squares() const { return squares_.sum(); }
  // By table, once reduced: the sums of the rows that this rank updates.
  const std::vector<RowView<T>>& sums() const { return exchange_.sums(); }
  void end_step() { phase_ = Phase::Updated; }  // the rows are updated
  bool is_updated() const { return phase_ == Phase::Updated; }

  void note_in(Trace* trace) { trace_ = trace; }  // null: nowhere

 private:
  enum class Phase : std::uint8_t { Computing, Exchanging, SendingHot, Exchanged, Squaring, Reduced, Updated };
  void start_exchange();

  const TableStore<T>& store_;
  HotRows<T>* hot_;
  BlockChoice<T> blocks_;
  RowCollector<T> collector_;
  RowExchange<T> exchange_;
  RowSquares<T> squares_;
  Phase phase_ = Phase::Updated;
  bool is_open_ = false, wants_squares_ = false;
  Trace* trace_ = nullptr;
  Trace::Clock::time_point started_;
};

}  // namespace lockstep::parallel
