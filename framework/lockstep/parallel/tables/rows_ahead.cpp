#include "lockstep/parallel/tables/rows_ahead.h"

#include <algorithm>

#include "lockstep/core/backoff.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/parallel/tables/row_words.h"

namespace lockstep::parallel {
namespace {

template <class Visit>
auto with_ids(const TableUse& use, const Visit& visit) {
  const auto count = static_cast<std::size_t>(use.count);
  if (use.dtype == DType::I64) return visit(std::span(static_cast<const std::int64_t*>(use.ids), count));
  return visit(std::span(static_cast<const std::int32_t*>(use.ids), count));
}

}  // namespace

template <class T>
RowsAhead<T>::RowsAhead(const comm::Communicator& comm, const TableStore<T>& store, HotRows<T>* hot,
                        const std::function<void()>& waiting)
    : to_owners_(comm.duplicate()),
      from_owners_(comm.duplicate()),
      store_(store),
      hot_(hot),
      waiting_(waiting),
      requests_(to_owners_),
      answers_(from_owners_) {
  now_.tables.resize(store.count());
  next_.tables.resize(store.count());
  here_.rows.resize(store.count());
}

template <class T>
void RowsAhead<T>::announce(std::span<const TableUse> uses) {
  collect(uses);
  requests_.clear();
  next_.lengths.assign(static_cast<std::size_t>(to_owners_.size()), 1);
  for (std::size_t t = 0; t < store_.count(); ++t) ask(t);
  spans_.asked = Trace::Clock::now();
  requests_.start();
}

// A lookup with an id outside of its table is left out: it is an error once it is made.
template <class T>
void RowsAhead<T>::collect(std::span<const TableUse> uses) {
  next_.uses.clear();
  for (auto& table : next_.tables) table.ids.clear();
  for (const TableUse& use : uses) {
    const std::size_t t = store_.find(*use.table);
    RawVector<std::int64_t>& all = next_.tables[t].ids;
    with_ids(use, [&](auto ids) {
      if (!std::ranges::all_of(ids, [&](std::int64_t id) { return id >= 0 && id < use.table->rows; })) return;
      next_.uses.push_back({t, all.size(), ids.size()});
      all.insert(all.end(), ids.begin(), ids.end());
    });
  }
}

// A request has, for each table, the number of rows and their numbers.
template <class T>
void RowsAhead<T>::ask(std::size_t table) {
  const auto& stored = store_[table];
  typename Wanted::OfTable& wanted = next_.tables[table];
  const IdSort::Groups groups = scratch_.sorter.sort(wanted.ids, stored.table().rows);
  wanted.rows.assign(groups.ids.begin(), groups.ids.end());
  wanted.index.resize(wanted.ids.size());
  for (std::size_t i = 0; i < groups.count(); ++i) {
    for (const std::uint32_t use : groups.uses(i)) wanted.index[use] = static_cast<std::uint32_t>(i);
  }
  find_owners(table);
  std::vector<std::size_t>& counts = scratch_.counts;
  counts.assign(next_.lengths.size(), 0);
  for (const std::int32_t owner : wanted.owners) {
    if (owner >= 0) ++counts[static_cast<std::size_t>(owner)];
  }
  std::vector<std::int64_t*>& to = scratch_.to;
  to.clear();
  for (std::size_t r = 0; r < counts.size(); ++r) {
    std::int64_t* const words = extend(requests_.outgoing(static_cast<int>(r)), 1 + counts[r]);
    *words = static_cast<std::int64_t>(counts[r]);
    to.push_back(words + 1);
    next_.lengths[r] += static_cast<std::int64_t>(row_words<T>(counts[r], stored.table().width));
  }
  for (std::size_t i = 0; i < wanted.rows.size(); ++i) {
    if (wanted.owners[i] >= 0) *to[static_cast<std::size_t>(wanted.owners[i])]++ = wanted.rows[i];
  }
}

template <class T>
void RowsAhead<T>::find_owners(std::size_t table) {
  typename Wanted::OfTable& wanted = next_.tables[table];
  const std::span<const std::int64_t> hot = hot_ != nullptr ? hot_->ids(table) : std::span<const std::int64_t>();
  wanted.owners.resize(wanted.rows.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < wanted.rows.size(); ++i) {
    while (at < hot.size() && hot[at] < wanted.rows[i]) ++at;
    const bool is_hot = at < hot.size() && hot[at] == wanted.rows[i];
    wanted.owners[i] = is_hot ? -1 - static_cast<std::int32_t>(at) : store_[table].deal.owner(wanted.rows[i]);
  }
}

template <class T>
bool RowsAhead<T>::is_announced(std::span<const TableUse> uses) const {
  if (uses.size() != now_.uses.size()) return false;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use& known = now_.uses[i];
    if (known.table != store_.find(*uses[i].table) || static_cast<std::int64_t>(known.count) != uses[i].count)
      return false;
    const std::int64_t* const ids = now_.tables[known.table].ids.data() + known.begin;
    if (!with_ids(uses[i], [&](auto now) { return std::equal(now.begin(), now.end(), ids); })) return false;
  }
  return true;
}

template <class T>
void RowsAhead<T>::begin(std::span<const TableUse> uses, bool more) {
  wait(requests_);
  std::swap(now_, next_);
  next_.uses.clear();
  const bool asks = more || !is_announced(uses);
  for (int r = 0; r < to_owners_.size(); ++r) {
    if (r != to_owners_.rank()) answer(r, asks);
  }
  here_.complete = false;
  here_.asks_more = asks;
  here_.found = 0;
  spans_.answered = Trace::Clock::now();
  answers_.start(now_.lengths);
}

// An answer has one word, whether this rank makes further lookups, and the rows of each table from a whole word on.
template <class T>
void RowsAhead<T>::answer(int rank, bool more) {
  constexpr std::size_t kAhead = 16;
  const std::int64_t* request = requests_.incoming(rank).data();
  AllToAll::Words& words = answers_.outgoing(rank);
  words.assign(1, more ? 1 : 0);
  for (std::size_t t = 0; t < store_.count(); ++t) {
    const auto& stored = store_[t];
    const std::int64_t width = stored.table().width;
    const std::span<const std::int64_t> rows(request + 1, static_cast<std::size_t>(*request));
    request += 1 + rows.size();
    T* to = reinterpret_cast<T*>(extend(words, row_words<T>(rows.size(), width)));
    for (std::size_t i = 0; i < rows.size(); ++i, to += width) {
      if (i + kAhead < rows.size()) __builtin_prefetch(store_.row(stored, rows[i + kAhead]));
      copy_row(store_.row(stored, rows[i]), to, width);
    }
  }
}

template <class T>
bool RowsAhead<T>::advance() {
  bool moved = false;
  if (!requests_.done()) {
    moved = requests_.advance();
    if (requests_.done() && spans_.trace != nullptr)
      spans_.trace->add(Trace::Track::TableIds, "ids of the next lookups", spans_.asked, 0, requests_.sent_bytes());
  }
  if (here_.complete) return moved;
  moved = answers_.advance() || moved;
  if (!answers_.done()) return moved;
  locate();
  if (spans_.trace != nullptr)
    spans_.trace->add(Trace::Track::TableRows, "rows of tables", spans_.answered, 0, answers_.received_bytes());
  return here_.complete = true;
}

// Rows of this rank are read where they lie.
template <class T>
void RowsAhead<T>::locate() {
  const auto size = static_cast<std::size_t>(to_owners_.size());
  std::vector<const std::int64_t*>& words = scratch_.from;
  words.clear();
  for (int r = 0; r < to_owners_.size(); ++r) {
    words.push_back(nullptr);
    if (r == to_owners_.rank()) continue;
    words.back() = answers_.incoming(r).data();
    const bool asks = *words.back()++ != 0;
    here_.asks_more = here_.asks_more || asks;
  }
  std::vector<std::size_t>& counts = scratch_.counts;
  counts.resize(size);
  for (std::size_t t = 0; t < store_.count(); ++t) {
    const auto& stored = store_[t];
    const std::int64_t width = stored.table().width;
    const RawVector<std::int64_t>& rows = now_.tables[t].rows;
    here_.rows[t].resize(rows.size());
    std::ranges::fill(counts, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int32_t owner = now_.tables[t].owners[i];
      if (owner < 0) {
        here_.rows[t][i] = hot_->row(t, static_cast<std::size_t>(-1 - owner));
      } else if (owner == to_owners_.rank()) {
        here_.rows[t][i] = store_.row(stored, rows[i]);
      } else {
        const auto o = static_cast<std::size_t>(owner);
        here_.rows[t][i] = reinterpret_cast<const T*>(words[o]) + static_cast<std::int64_t>(counts[o]++) * width;
      }
    }
    for (std::size_t r = 0; r < size; ++r) words[r] += row_words<T>(counts[r], width);
  }
}

template <class T>
auto RowsAhead<T>::find(std::size_t table, std::span<const std::int64_t> rows) -> const Use* {
  for (std::size_t tried = 0; tried < now_.uses.size(); ++tried) {
    here_.found = (here_.found + (tried > 0 ? 1 : 0)) % now_.uses.size();
    const Use& use = now_.uses[here_.found];
    if (use.table != table || use.count != rows.size()) continue;
    if (std::ranges::equal(rows, std::span(now_.tables[table].ids).subspan(use.begin, use.count))) return &use;
  }
  return nullptr;
}

template <class T>
bool RowsAhead<T>::lookup(std::size_t table, std::span<const std::int64_t> rows, T* values) {
  if (now_.uses.empty()) return false;
  here_.found = (here_.found + 1) % now_.uses.size();  // lookups come in the order in which they were announced
  const Use* const use = find(table, rows);
  if (use == nullptr) return false;
  wait(answers_);
  const std::int64_t width = store_[table].table().width;
  const std::uint32_t* const index = now_.tables[table].index.data() + use->begin;
  const T* const* const from = here_.rows[table].data();
  parallel_for(std::ssize(rows), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) copy_row(from[index[i]], values + i * width, width);
  });
  return true;
}

template <class T>
void RowsAhead<T>::wait(const AllToAll& messages) {
  const bool is_rows = &messages == &answers_;
  const auto is_here = [&] { return is_rows ? here_.complete : messages.done(); };
  if (is_here()) return;
  const Trace::Clock::time_point since = Trace::Clock::now();
  for (Backoff pause; !is_here();) {
    if (advance()) continue;
    waiting_();
    pause.pause();
  }
  if (spans_.trace != nullptr)
    spans_.trace->add(Trace::Track::Wait, is_rows ? "for rows of tables" : "for ids of lookups", since);
}

template <class T>
void RowsAhead<T>::complete() {
  wait(requests_);
  wait(answers_);
}

template class RowsAhead<float>;
template class RowsAhead<double>;

}  // namespace lockstep::parallel
