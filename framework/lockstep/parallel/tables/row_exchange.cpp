#include "lockstep/parallel/tables/row_exchange.h"

#include "lockstep/parallel/tables/row_words.h"

namespace lockstep::parallel {

template <class T>
RowExchange<T>::RowExchange(const comm::Communicator& comm, const WorldLayout& world, const RowOwners& owners,
                            std::vector<TableSize> sizes)
    : comm_(comm.duplicate()),
      owners_(owners),
      sizes_(std::move(sizes)),
      first_operand_{0},
      merges_(world.merges()),
      messages_(comm_),
      blocks_(sizes_.size()),
      sums_(sizes_.size()) {
  for (const auto& of_rank : world.partials()) first_operand_.push_back(first_operand_.back() + of_rank.size());
  operands_.resize(first_operand_.back());
  for (std::vector<Operand>& tables : operands_) tables.resize(sizes_.size());
  for (std::size_t group = 0; group < owners_.groups.size(); ++group) {
    std::vector<RowDeal>& deals = deals_.emplace_back();
    for (const TableSize& size : sizes_) deals.push_back(owners_.deal(static_cast<int>(group), size.rows));
  }
}

template <class T>
void RowExchange<T>::start(Partials& mine) {
  if (comm_.size() == 1) {
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      std::swap(operands_[0][t].own_rows, mine[0][t]);
      sums_[t] = operands_[0][t].own_rows.view();
    }
    return;
  }
  messages_.clear();
  const std::size_t first = first_of(comm_.rank()), end = first_of(comm_.rank() + 1);
  for (std::size_t group = 0; group < owners_.groups.size(); ++group) {
    for (std::size_t p = first; p < end; ++p) {
      for (std::size_t t = 0; t < sizes_.size(); ++t) {
        const RowSet<T>& set = mine[p - first][t];
        blocks_[t] ? deal_out_block(set, group, t, operands_[p][t]) : deal_out(set, group, t, operands_[p][t]);
      }
    }
  }
  messages_.start();
  phase_ = Phase::Sending;
}

// A message has, for each open partial sum and table: the number of rows, their numbers, and the rows, from a whole
// word on; or a block. Rows that this rank owns stay here.
template <class T>
void RowExchange<T>::deal_out(const RowSet<T>& set, std::size_t group, std::size_t table, Operand& own) {
  const std::vector<int>& ranks = owners_.groups[group];
  const RowDeal& deal = deals_[group][table];
  const std::int64_t width = sizes_[table].width;
  std::vector<Cursor>& cursors = scratch_.cursors;
  cursors.assign(ranks.size(), {});
  for (const std::int64_t id : set.ids) ++cursors[static_cast<std::size_t>(deal.owner(id))].count;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    Cursor& cursor = cursors[k];
    if (ranks[k] == comm_.rank()) {
      own.own_rows.resize(cursor.count, width);
      own.rows = own.own_rows.view();
      cursor = {cursor.count, own.own_rows.ids.data(), own.own_rows.rows.data()};
      continue;
    }
    std::int64_t* const to = extend(messages_.outgoing(ranks[k]), 1 + cursor.count + row_words<T>(cursor.count, width));
    *to = static_cast<std::int64_t>(cursor.count);
    cursor = {cursor.count, to + 1, reinterpret_cast<T*>(to + 1 + cursor.count)};
  }
  const T* row = set.rows.data();
  for (const std::int64_t id : set.ids) {
    Cursor& cursor = cursors[static_cast<std::size_t>(deal.owner(id))];
    *cursor.ids++ = id;
    copy_row(row, cursor.rows, width);
    cursor.rows += width;
    row += width;
  }
}

template <class T>
void RowExchange<T>::deal_out_block(const RowSet<T>& set, std::size_t group, std::size_t table, Operand& own) {
  const std::vector<int>& ranks = owners_.groups[group];
  const RowDeal& deal = deals_[group][table];
  const std::int64_t width = sizes_[table].width;
  std::vector<BlockWriter<T>>& writers = scratch_.writers;
  writers.clear();
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const std::int64_t rows = deal.rows_of(static_cast<int>(k));
    const std::size_t words = block_words<T>(rows, width);
    if (ranks[k] == comm_.rank()) {
      own.own_block.resize(words);
      own.block = own.own_block.data();
      writers.emplace_back(own.own_block.data(), rows, width);
    } else {
      writers.emplace_back(extend(messages_.outgoing(ranks[k]), words), rows, width);
    }
  }
  const T* row = set.rows.data();
  for (const std::int64_t id : set.ids) {
    writers[static_cast<std::size_t>(deal.owner(id))].write(deal.local(id), row);
    row += width;
  }
  for (BlockWriter<T>& writer : writers) writer.finish();
}

template <class T>
bool RowExchange<T>::advance() {
  if (phase_ == Phase::Done || !messages_.advance()) return false;
  if (!messages_.done()) return true;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (rank != comm_.rank()) unpack(rank);
  }
  for (const TreeMerge& merge : merges_) {
    const auto into = static_cast<std::size_t>(merge.into), from = static_cast<std::size_t>(merge.from);
    for (std::size_t t = 0; t < sizes_.size(); ++t)
      add(operands_[into][t], operands_[from][t], t, &merge == &merges_.back());
  }
  for (std::size_t t = 0; t < sizes_.size(); ++t) sums_[t] = operands_[0][t].rows;
  phase_ = Phase::Done;
  return true;
}

template <class T>
void RowExchange<T>::unpack(int rank) {
  const std::int64_t* words = messages_.incoming(rank).data();
  for (std::size_t operand = first_of(rank); operand < first_of(rank + 1); ++operand) {
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      Operand& from = operands_[operand][t];
      if (blocks_[t]) {
        from.block = words;
        words += block_words<T>(my_deal(t).rows_of(owners_.me), sizes_[t].width);
        continue;
      }
      from.rows = take_rows<T>(words, sizes_[t].width);
    }
  }
}

template <class T>
void RowExchange<T>::add(Operand& sum, const Operand& more, std::size_t table, bool last) {
  const std::int64_t width = sizes_[table].width;
  if (blocks_[table] && last) {
    take_sum(sum.block, more.block, my_deal(table), owners_.me, width, sum.own_rows);
    sum.rows = sum.own_rows.view();
  } else if (blocks_[table]) {
    const std::int64_t rows = my_deal(table).rows_of(owners_.me);
    sum.own_block.resize(block_words<T>(rows, width));
    add_blocks<T>(sum.block, more.block, rows, width, sum.own_block.data());
    sum.block = sum.own_block.data();
  } else if (sum.rows.empty()) {
    sum.rows = more.rows;
  } else if (!more.rows.empty()) {
    merge_rows(sum.rows, more.rows, width, scratch_.rows);
    std::swap(sum.own_rows, scratch_.rows);
    sum.rows = sum.own_rows.view();
  }
}

template class RowExchange<float>;
template class RowExchange<double>;

}  // namespace lockstep::parallel
