#include "lockstep/parallel/tables/row_service.h"

#include "lockstep/core/error.h"
#include "lockstep/parallel/tables/row_words.h"

namespace lockstep::parallel {
namespace {

// A request: whether the rank is in its passes, the table, and numbers of rows.
constexpr std::size_t kActive = 0, kTable = 1, kFirstRow = 2;

}  // namespace

template <class T>
RowService<T>::RowService(const comm::Communicator& comm, const TableStore<T>& store,
                          const std::function<void()>& waiting)
    : comm_(comm.duplicate()),
      store_(store),
      waiting_(waiting),
      requests_(comm_),
      answers_(comm_),
      lengths_(static_cast<std::size_t>(comm.size())) {}

template <class T>
void RowService<T>::lookup(std::size_t table, std::span<const std::int64_t> rows, T* values) {
  check(open_, "tables",
        "rows of a sharded table are read outside of a step and an evaluation, in which all ranks take part; expected "
        "replicated tables, or a Predictor made from saved weights");
  requests_.clear();
  for (int r = 0; r < comm_.size(); ++r) requests_.outgoing(r).assign({1, static_cast<std::int64_t>(table)});
  const RowDeal& deal = store_[table].deal;
  const IdSort::Groups groups = sorter_.sort(rows, store_[table].table().rows);
  for (const std::int64_t id : groups.ids) requests_.outgoing(deal.owner(id)).push_back(id);
  round();
  const std::int64_t width = store_[table].table().width;
  next_.clear();  // by owner: its rows come in the order in which they were asked for
  for (int r = 0; r < comm_.size(); ++r) next_.push_back(reinterpret_cast<const T*>(answers_.incoming(r).data()));
  for (std::size_t i = 0; i < groups.count(); ++i) {
    const T*& from = next_[static_cast<std::size_t>(deal.owner(groups.ids[i]))];
    for (const std::uint32_t use : groups.uses(i)) copy_row(from, values + use * width, width);
    from += width;
  }
}

template <class T>
void RowService<T>::end() {
  if (!open_) return;
  do {
    for (int r = 0; r < comm_.size(); ++r) requests_.outgoing(r).assign({0, 0});
  } while (round());
  open_ = false;
}

template <class T>
bool RowService<T>::round() {
  requests_.start();
  complete(requests_, waiting_);
  bool active = false;
  for (int r = 0; r < comm_.size(); ++r) {
    active = active || requests_.incoming(r)[kActive] != 0;
    answer(r);
    const AllToAll::Words& mine = requests_.outgoing(r);
    const auto& stored = store_[static_cast<std::size_t>(mine[kTable])];
    lengths_[static_cast<std::size_t>(r)] =
        static_cast<std::int64_t>(row_words<T>(mine.size() - kFirstRow, stored.table().width));
  }
  answers_.start(lengths_);
  complete(answers_, waiting_);
  return active;
}

template <class T>
void RowService<T>::answer(int rank) {
  const std::span<const std::int64_t> request = requests_.incoming(rank);
  const auto& stored = store_[static_cast<std::size_t>(request[kTable])];
  const std::int64_t width = stored.table().width;
  AllToAll::Words& words = answers_.outgoing(rank);
  words.resize(row_words<T>(request.size() - kFirstRow, width));
  T* to = reinterpret_cast<T*>(words.data());
  for (const std::int64_t row : request.subspan(kFirstRow)) {
    copy_row(store_.row(stored, row), to, width);
    to += width;
  }
}

template class RowService<float>;
template class RowService<double>;

}  // namespace lockstep::parallel
