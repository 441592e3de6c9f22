#include "lockstep/parallel/tables/row_service.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"

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
std::size_t RowService<T>::words_of(std::size_t table, std::size_t rows) const {
  constexpr std::size_t kWord = sizeof(std::int64_t);
  return (rows * static_cast<std::size_t>(store_[table].table().width) * sizeof(T) + kWord - 1) / kWord;
}

template <class T>
void RowService<T>::lookup(std::size_t table, std::span<const std::int64_t> rows, T* values) {
  check(open_, "tables",
        "rows of a sharded table are read outside of a step and an evaluation, in which all ranks take part; expected "
        "replicated tables, or a Predictor made from saved weights");
  requests_.clear();
  for (int r = 0; r < comm_.size(); ++r) requests_.outgoing(r).assign({1, static_cast<std::int64_t>(table)});
  const std::span<const IdSort::Use> uses = sorter_.sort(rows, store_[table].table().rows);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i == 0 || uses[i].id != uses[i - 1].id)
      requests_.outgoing(store_.deal().owner(uses[i].id)).push_back(uses[i].id);
  }
  round();
  const auto width = static_cast<std::size_t>(store_[table].table().width);
  std::vector<const T*> next;  // by owner: its rows come in the order in which they were asked for
  for (int r = 0; r < comm_.size(); ++r) next.push_back(reinterpret_cast<const T*>(answers_.incoming(r).data()));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const T*& from = next[static_cast<std::size_t>(store_.deal().owner(uses[i].id))];
    std::memcpy(values + static_cast<std::size_t>(uses[i].position) * width, from, width * sizeof(T));
    if (i + 1 == uses.size() || uses[i + 1].id != uses[i].id) from += width;
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
  const auto complete = [this](AllToAll& messages) {
    for (Backoff wait; !messages.done();) {
      if (messages.advance()) continue;
      waiting_();
      wait.pause();
    }
  };
  requests_.start();
  complete(requests_);
  bool active = false;
  for (int r = 0; r < comm_.size(); ++r) {
    active = active || requests_.incoming(r)[kActive] != 0;
    answer(r);
    const std::vector<std::int64_t>& mine = requests_.outgoing(r);
    lengths_[static_cast<std::size_t>(r)] =
        static_cast<std::int64_t>(words_of(static_cast<std::size_t>(mine[kTable]), mine.size() - kFirstRow));
  }
  answers_.start(lengths_);
  complete(answers_);
  return active;
}

template <class T>
void RowService<T>::answer(int rank) {
  const std::span<const std::int64_t> request = requests_.incoming(rank);
  const auto table = static_cast<std::size_t>(request[kTable]);
  const auto width = static_cast<std::size_t>(store_[table].table().width);
  std::vector<std::int64_t>& words = answers_.outgoing(rank);
  words.resize(words_of(table, request.size() - kFirstRow));
  T* to = reinterpret_cast<T*>(words.data());
  for (const std::int64_t row : request.subspan(kFirstRow)) {
    std::memcpy(to, store_.row(store_[table], row), width * sizeof(T));
    to += width;
  }
}

template class RowService<float>;
template class RowService<double>;

}  // namespace lockstep::parallel
