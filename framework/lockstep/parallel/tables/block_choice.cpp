#include "lockstep/parallel/tables/block_choice.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/backoff.h"
#include "lockstep/core/log.h"

namespace lockstep::parallel {
namespace {

// The part of the rows that a rank's sums must have on average: a row of 16 numbers with its own number takes 72 bytes,
// and a row of a block 64. With 74% of the rows, blocks took longer.
constexpr double kMostRows = 0.9;

}  // namespace

template <class T>
BlockChoice<T>::BlockChoice(const comm::Communicator& comm, const TableStore<T>& store, TableExchange form,
                            const std::function<void()>& waiting)
    : comm_(comm.duplicate()),
      store_(store),
      form_(comm.size() > 1 ? form : TableExchange::Rows),
      waiting_(waiting),
      counts_(std::make_shared<std::vector<std::int64_t>>(store.count())) {}

template <class T>
void BlockChoice<T>::count(const std::vector<std::vector<RowSet<T>>>& mine) {
  if (form_ != TableExchange::Auto || step_ != 1 || request_.active()) return;
  std::ranges::fill(*counts_, 0);
  for (const std::vector<RowSet<T>>& tables : mine) {
    for (std::size_t t = 0; t < tables.size(); ++t) (*counts_)[t] += std::ssize(tables[t].ids);
  }
  request_ = comm_.iallreduce(comm::Buffer(*counts_), comm::ReduceOp::Sum, counts_);
}

// The counts of step 1 arrive during step 2 at the latest.
template <class T>
std::vector<std::size_t> BlockChoice<T>::choose(std::size_t partials) {
  std::vector<std::size_t> tables;
  if (++step_ == 1 && form_ == TableExchange::Blocks) {
    tables.resize(store_.count());
    std::iota(tables.begin(), tables.end(), 0);
  }
  if (step_ != 3 || form_ != TableExchange::Auto) return tables;
  for (Backoff pause; !request_.test(); pause.pause()) waiting_();
  for (std::size_t t = 0; t < store_.count(); ++t) {
    const double all = static_cast<double>(partials) * static_cast<double>(store_[t].table().rows);
    const double part = static_cast<double>((*counts_)[t]) / all;
    if (part < kMostRows) continue;
    tables.push_back(t);
    say(t, part);
  }
  return tables;
}

template <class T>
void BlockChoice<T>::say(std::size_t table, double part) const {
  if (!comm_.is_root()) return;
  log()->info("table {}: a step uses {:.0f}% of its {} rows on each rank: its gradient travels as one block",
              store_[table].named.name, 100 * part, store_[table].table().rows);
}

template class BlockChoice<float>;
template class BlockChoice<double>;

}  // namespace lockstep::parallel
