#include "lockstep/parallel/tables/hot_rows.h"

#include <algorithm>
#include <tuple>

#include "lockstep/core/log.h"
#include "lockstep/parallel/tables/table_memory.h"

namespace lockstep::parallel {
namespace {

struct Counted {
  std::int64_t table, row, uses;
};
constexpr std::size_t kNumbers = 3;  // of a Counted in a message

void append(const Counted& one, AllToAll::Words& words) { words.insert(words.end(), {one.table, one.row, one.uses}); }

void take(std::span<const std::int64_t> words, std::vector<Counted>& all) {
  for (std::size_t i = 0; i < words.size(); i += kNumbers) all.push_back({words[i], words[i + 1], words[i + 2]});
}

// Adds up the uses of equal rows.
void join(std::vector<Counted>& all) {
  std::ranges::sort(all, {}, [](const Counted& c) { return std::tuple(c.table, c.row); });
  std::size_t count = 0;
  for (const Counted& one : all) {
    if (count > 0 && all[count - 1].table == one.table && all[count - 1].row == one.row) {
      all[count - 1].uses += one.uses;
    } else {
      all[count++] = one;
    }
  }
  all.resize(count);
}

// Keeps the rows that are used most; of equal ones the first.
void keep_most_used(std::vector<Counted>& all, std::int64_t rows) {
  std::ranges::sort(all, {}, [](const Counted& c) { return std::tuple(-c.uses, c.table, c.row); });
  if (std::cmp_greater(all.size(), rows)) all.resize(static_cast<std::size_t>(rows));
}

}  // namespace

template <class T>
HotRows<T>::HotRows(const comm::Communicator& comm, const TableStore<T>& store, std::int64_t rows,
                    const std::function<void()>& waiting)
    : comm_(comm.duplicate()),
      store_(store),
      rows_(rows),
      waiting_(waiting),
      messages_(comm_),
      counts_(store.count()),
      tables_(store.count()) {}

template <class T>
void HotRows<T>::count(std::size_t table, std::span<const std::int64_t> rows) {
  if (chosen_) return;
  for (const std::int64_t row : rows) ++counts_[table][row];
}

template <class T>
void HotRows<T>::begin_step(std::uint64_t step) {
  if (!chosen_ && step > kCountedSteps) choose();
  if (chosen_ && !fresh_) refresh();
}

template <class T>
void HotRows<T>::choose() {
  messages_.clear();
  for (std::size_t t = 0; t < counts_.size(); ++t) {
    for (const auto& [row, uses] : counts_[t])
      append({static_cast<std::int64_t>(t), row, uses}, messages_.outgoing(store_[t].deal.owner(row)));
  }
  counts_.clear();
  run_round();
  std::vector<Counted> all;
  for (int r = 0; r < comm_.size(); ++r) take(messages_.incoming(r), all);
  join(all);
  keep_most_used(all, rows_);
  messages_.clear();
  for (int r = 0; r < comm_.size(); ++r) {
    for (const Counted& one : all) append(one, messages_.outgoing(r));
  }
  run_round();
  all.clear();
  for (int r = 0; r < comm_.size(); ++r) take(messages_.incoming(r), all);
  keep_most_used(all, rows_);
  join(all);  // rising rows
  for (const Counted& one : all) {
    OfTable& table = tables_[static_cast<std::size_t>(one.table)];
    (store_.owns(store_[static_cast<std::size_t>(one.table)], one.row) ? table.mine : table.ids).push_back(one.row);
  }
  allocate();
  chosen_ = true;
  fresh_ = false;
  if (comm_.is_root()) log()->info("tables: every rank has the {} rows that were used most", all.size());
}

// Allocates the replicas of the rows that are chosen. All ranks are in the same place of the same step, so none waits
// for the progress of another's communication meanwhile.
template <class T>
void HotRows<T>::allocate() {
  const auto each_part = [&](const auto& visit) {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      for (int part = -1; part < static_cast<int>(store_[t].states.size()); ++part)
        visit(tables_[t], tables_[t].ids.size() * static_cast<std::size_t>(store_[t].width(part)));
    }
  };
  std::size_t elements = 0;
  each_part([&](const OfTable&, std::size_t count) { elements += count; });
  allocate_together(
      comm_, TableMemory::HotRows, "replicas of the rows that are used most, with their states", elements * sizeof(T),
      [&] { each_part([](OfTable& table, std::size_t count) { table.parts.emplace_back(count); }); },
      "take fewer of these rows (--hot-rows), shorter rows (--dim) or a rule with fewer states (--table-optimizer "
      "rowwise-adagrad or sgd)");
}

// A message has values and states of the sender's hot rows, table by table, row by row.
template <class T>
void HotRows<T>::refresh() {
  RawVector<T> mine;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    for (const std::int64_t row : tables_[t].mine) {
      for (int part = -1; part < static_cast<int>(store_[t].states.size()); ++part) {
        const T* const from = store_.row(store_[t], row, part);
        mine.insert(mine.end(), from, from + store_[t].width(part));
      }
    }
  }
  messages_.clear();
  for (int r = 0; r < comm_.size(); ++r) {
    if (r == comm_.rank() || mine.empty()) continue;
    std::int64_t* const to = extend(messages_.outgoing(r), row_words<T>(1, std::ssize(mine)));
    std::copy(mine.begin(), mine.end(), reinterpret_cast<T*>(to));
  }
  run_round();
  std::vector<const T*> from;
  for (int r = 0; r < comm_.size(); ++r) from.push_back(reinterpret_cast<const T*>(messages_.incoming(r).data()));
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    for (std::size_t i = 0; i < tables_[t].ids.size(); ++i) {
      const T*& next = from[static_cast<std::size_t>(store_[t].deal.owner(tables_[t].ids[i]))];
      for (int part = -1; part < static_cast<int>(store_[t].states.size()); ++part) {
        std::copy_n(next, store_[t].width(part), row(t, i, part));
        next += store_[t].width(part);
      }
    }
  }
  fresh_ = true;
}

template <class T>
void HotRows<T>::start(const std::vector<RowView<T>>& sums) {
  if (!chosen_) return;
  scratch_.message.clear();
  for (std::size_t t = 0; t < tables_.size(); ++t) append_sums(t, sums[t]);
  messages_.clear();
  for (int r = 0; r < comm_.size(); ++r) {
    if (r != comm_.rank()) messages_.outgoing(r) = scratch_.message;
  }
  messages_.start();
}

template <class T>
void HotRows<T>::append_sums(std::size_t table, const RowView<T>& sums) {
  std::vector<std::size_t>& found = scratch_.found;
  found.clear();
  auto at = sums.ids.begin();
  for (const std::int64_t row : tables_[table].mine) {
    at = std::lower_bound(at, sums.ids.end(), row);
    if (at != sums.ids.end() && *at == row) found.push_back(static_cast<std::size_t>(at - sums.ids.begin()));
  }
  const std::int64_t width = store_[table].table().width;
  std::int64_t* words = extend(scratch_.message, 1 + found.size() + row_words<T>(found.size(), width));
  *words++ = std::ssize(found);
  for (const std::size_t i : found) *words++ = sums.ids[i];
  T* to = reinterpret_cast<T*>(words);
  for (const std::size_t i : found) {
    copy_row(sums.rows + static_cast<std::int64_t>(i) * width, to, width);
    to += width;
  }
}

template <class T>
void HotRows<T>::run_round() {
  messages_.start();
  complete(messages_, waiting_);
}

template class HotRows<float>;
template class HotRows<double>;

}  // namespace lockstep::parallel
