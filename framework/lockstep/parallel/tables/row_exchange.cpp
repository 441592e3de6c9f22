#include "lockstep/parallel/tables/row_exchange.h"

#include <algorithm>
#include <cstring>

namespace lockstep::parallel {

template <class T>
RowExchange<T>::RowExchange(const comm::Communicator& comm, const WorldLayout& world, const RowOwners& owners,
                            std::vector<std::int64_t> widths)
    : comm_(comm.duplicate()), owners_(owners), widths_(std::move(widths)), merges_(world.merges()), messages_(comm_) {
  std::size_t operands = 0;
  for (const auto& of_rank : world.partials()) {
    partials_.push_back(of_rank.size());
    operands += of_rank.size();
  }
  operands_.resize(operands);
  for (std::vector<RowSet<T>>& tables : operands_) tables.resize(widths_.size());
}

template <class T>
std::size_t RowExchange<T>::words_of(std::size_t table, std::int64_t rows) const {
  constexpr std::size_t kWord = sizeof(std::int64_t);
  const std::size_t bytes = static_cast<std::size_t>(rows * widths_[table]) * sizeof(T);
  return (bytes + kWord - 1) / kWord;
}

template <class T>
void RowExchange<T>::start(Partials& mine) {
  if (comm_.size() == 1) {
    std::swap(operands_[0], mine[0]);
    return;
  }
  messages_.clear();
  for (std::size_t group = 0; group < owners_.groups.size(); ++group) pack(mine, group);
  messages_.start();
  phase_ = Phase::Sending;
}

// A message has, for each open partial sum and table: the number of rows, their numbers, and the rows, from a whole
// word on.
template <class T>
void RowExchange<T>::pack(const Partials& mine, std::size_t group) {
  const std::vector<int>& ranks = owners_.groups[group];
  const RowDeal deal(static_cast<int>(ranks.size()));
  std::vector<std::vector<std::size_t>> chosen(ranks.size());  // positions in the set, by owner
  for (std::size_t p = 0; p < partials_[static_cast<std::size_t>(comm_.rank())]; ++p) {
    for (std::size_t t = 0; t < widths_.size(); ++t) {
      const RowSet<T>& set = mine[p][t];
      const auto width = static_cast<std::size_t>(widths_[t]);
      for (auto& positions : chosen) positions.clear();
      for (std::size_t i = 0; i < set.ids.size(); ++i)
        chosen[static_cast<std::size_t>(deal.owner(set.ids[i]))].push_back(i);
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        std::vector<std::int64_t>& words = messages_.outgoing(ranks[k]);
        const auto rows = static_cast<std::int64_t>(chosen[k].size());
        words.push_back(rows);
        for (const std::size_t i : chosen[k]) words.push_back(set.ids[i]);
        const std::size_t begin = words.size();
        words.resize(begin + words_of(t, rows));
        auto* to = reinterpret_cast<std::byte*>(words.data() + begin);
        for (const std::size_t i : chosen[k]) {
          std::memcpy(to, set.rows.data() + i * width, width * sizeof(T));
          to += width * sizeof(T);
        }
      }
    }
  }
}

template <class T>
bool RowExchange<T>::advance() {
  if (phase_ == Phase::Done || !messages_.advance()) return false;
  if (!messages_.done()) return true;
  unpack();
  for (const TreeMerge& merge : merges_) {
    for (std::size_t t = 0; t < widths_.size(); ++t) {
      add_rows(operands_[static_cast<std::size_t>(merge.into)][t], operands_[static_cast<std::size_t>(merge.from)][t],
               widths_[t], scratch_);
    }
  }
  phase_ = Phase::Done;
  return true;
}

template <class T>
void RowExchange<T>::unpack() {
  std::size_t operand = 0;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    const std::int64_t* words = messages_.incoming(rank).data();
    for (std::size_t p = 0; p < partials_[static_cast<std::size_t>(rank)]; ++p, ++operand) {
      for (std::size_t t = 0; t < widths_.size(); ++t) {
        RowSet<T>& set = operands_[operand][t];
        const std::int64_t rows = *words++;
        set.ids.assign(words, words + rows);
        words += rows;
        set.rows.resize(static_cast<std::size_t>(rows * widths_[t]));
        if (rows > 0) std::memcpy(set.rows.data(), words, set.rows.size() * sizeof(T));
        words += words_of(t, rows);
      }
    }
  }
}

template class RowExchange<float>;
template class RowExchange<double>;

}  // namespace lockstep::parallel
