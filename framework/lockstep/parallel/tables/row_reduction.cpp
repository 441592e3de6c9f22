#include "lockstep/parallel/tables/row_reduction.h"

namespace lockstep::parallel {
namespace {

template <class T>
std::vector<TableSize> sizes_of(const TableStore<T>& store) {
  std::vector<TableSize> sizes;
  for (std::size_t t = 0; t < store.count(); ++t) sizes.push_back({store[t].table().rows, store[t].table().width});
  return sizes;
}

}  // namespace

template <class T>
RowReduction<T>::RowReduction(const comm::Communicator& comm, const WorldLayout& world, const TableStore<T>& store,
                              HotRows<T>* hot, TableExchange form, const std::function<void()>& waiting)
    : store_(store),
      hot_(hot),
      blocks_(comm, store, form, waiting),
      collector_(world, sizes_of(store)),
      exchange_(comm, world, store.owners(), sizes_of(store)),
      squares_(comm) {}

template <class T>
void RowReduction<T>::begin_step() {
  phase_ = Phase::Computing;
  is_open_ = false;
  collector_.begin_step();
  for (const std::size_t table : blocks_.choose(exchange_.operands())) exchange_.use_blocks(table);
}

template <class T>
void RowReduction<T>::add(std::size_t number, std::span<const std::int64_t> rows, const T* gradient) {
  if (hot_ != nullptr) hot_->count(number, rows);
  collector_.add(number, store_[number].table(), rows, gradient);
  start_exchange();
}

template <class T>
void RowReduction<T>::end_shard() {
  collector_.end_shard();
  start_exchange();
}

template <class T>
void RowReduction<T>::start_exchange() {
  if (phase_ != Phase::Computing || !collector_.is_complete()) return;
  started_ = Trace::Clock::now();
  blocks_.count(collector_.sums());
  exchange_.start(collector_.sums());
  phase_ = Phase::Exchanging;
}

template <class T>
void RowReduction<T>::open(bool squares) {
  wants_squares_ = squares;
  is_open_ = true;
}

template <class T>
bool RowReduction<T>::advance() {
  bool moved = false;
  if (phase_ == Phase::Exchanging) {
    moved = exchange_.advance();
    if (!exchange_.done()) return moved;
    if (hot_ != nullptr) hot_->start(exchange_.sums());
    phase_ = Phase::SendingHot;
  }
  if (phase_ == Phase::SendingHot) {
    if (hot_ != nullptr) {
      moved = hot_->advance() || moved;
      if (!hot_->done()) return moved;
    }
    if (trace_ != nullptr)
      trace_->add(Trace::Track::RowGradients, "row gradients", started_, 0, exchange_.sent_bytes());
    phase_ = Phase::Exchanged;
  }
  if (!is_open_) return moved;  // the caller's state is still that of the last step
  if (phase_ == Phase::Exchanged) {
    if (wants_squares_) squares_.start(store_, exchange_.sums());
    phase_ = Phase::Squaring;
  }
  if (phase_ == Phase::Squaring && (!wants_squares_ || squares_.advance())) {
    phase_ = Phase::Reduced;
    moved = true;
  }
  return moved;
}

template class RowReduction<float>;
template class RowReduction<double>;

}  // namespace lockstep::parallel
