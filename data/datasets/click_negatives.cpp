#include "data/datasets/click_negatives.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "data/datasets/click_data.h"
#include "data/datasets/click_scan.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/gather_lists.h"
#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kNegativesSite = "negatives";

// An item's first sample, and its rows.
struct Found {
  std::int64_t sample;
  std::vector<std::int64_t> rows;
};
using Items = std::map<std::int64_t, Found>;  // by the row of the first field

// The rows of all fields from `first` on, within the table.
std::vector<std::int64_t> rows_of(const IdRows& ids, std::size_t first, const std::int64_t* values,
                                  const std::function<std::string()>& place) {
  std::vector<std::int64_t> rows;
  for (std::size_t f = first; f < ids.names.size(); ++f) {
    for (std::int64_t c = ids.first_column(f); c < ids.first_column(f + 1); ++c) {
      const bool none = ids.is_bag(f) && values[c] == kMissingId;
      rows.push_back(none ? ids.padding() : ids.first_row(f) + ids.row(f, values[c], place));
    }
  }
  return rows;
}

Items items_of_rank(const data::Dataset& set, const IdRows& ids, std::size_t first, const comm::Communicator* comm) {
  Items items;
  each_ids(set, comm, [&](std::int64_t sample, const std::int64_t* values) {
    const auto place = [&] { return set.locate(sample); };
    const std::int64_t row = ids.row(first, values[ids.first_column(first)], place);
    if (!items.contains(row)) items[row] = {sample, rows_of(ids, first, values, place)};
  });
  return items;
}

// The items of all ranks; of several samples of an item the first one counts.
Items gathered(const Items& mine, std::int64_t columns, const comm::Communicator& comm) {
  std::vector<std::int64_t> sent;
  for (const auto& [row, found] : mine) {
    sent.insert(sent.end(), {row, found.sample});
    sent.insert(sent.end(), found.rows.begin(), found.rows.end());
  }
  const std::vector<std::int64_t> all = comm::gather_lists<std::int64_t>(comm, sent);
  Items items;
  for (auto at = all.begin(); at != all.end(); at += columns + 2) {
    const auto [place, is_new] = items.try_emplace(at[0], Found{at[1], {}});
    if (!is_new && place->second.sample <= at[1]) continue;
    place->second = {at[1], {at + 2, at + 2 + columns}};
  }
  return items;
}

}  // namespace

std::vector<double> item_shares(std::span<const std::int64_t> counts, double exponent) {
  std::vector<double> shares(counts.size());
  double total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) shares[i] = math::pow(static_cast<double>(counts[i]), exponent);
    total += shares[i];
  }
  for (double& share : shares) share /= total > 0 ? total : 1;
  return shares;
}

std::int64_t ItemList::draw(double uniform) const {
  const auto above = std::ranges::upper_bound(cumulative, uniform * cumulative.back());
  return std::min(above - cumulative.begin(), std::ssize(cumulative) - 1);
}

ItemList list_items(const data::RunData& data, const IdRows& ids, std::size_t first_field, double exponent,
                    const comm::Communicator* comm) {
  const std::vector<std::int64_t> counts = count_rows(data, ids, first_field, comm);
  ItemList list{.columns = ids.columns() - ids.first_column(first_field)};
  Items items = comm::collectively(comm, [&] { return items_of_rank(*data.train, ids, first_field, comm); });
  if (comm != nullptr) items = gathered(items, list.columns, *comm);
  check(items.size() >= 2, kNegativesSite, "the training samples have {} item, expected at least 2 to draw from",
        items.size());
  const std::vector<double> shares = item_shares(counts, exponent);
  double sum = 0;
  for (const auto& [row, found] : items) {
    for (const std::int64_t one : found.rows) list.rows.push_back(static_cast<std::int32_t>(one));
    list.cumulative.push_back(sum += shares[static_cast<std::size_t>(row)]);
  }
  return list;
}

std::vector<data::Field> DrawNegatives::fields(const std::vector<data::Field>& in) const {
  std::vector<data::Field> out = in;
  out.push_back({"negatives", {count_, columns_}, DType::I32});
  return out;
}

void DrawNegatives::apply(const data::SampleKey& key, const std::vector<data::Field>& shape,
                          std::span<const std::byte* const> in, std::span<std::byte* const> out) const {
  for (std::size_t i = 0; i < shape.size(); ++i) std::memcpy(out[i], in[i], shape[i].bytes());
  auto* to = reinterpret_cast<std::int32_t*>(out.back());
  if (items_ == nullptr) {
    std::fill_n(to, count_ * columns_, 0);
    return;
  }
  RandomStream random = key.random("negatives");
  for (std::int64_t i = 0; i < count_; ++i)
    to = std::copy_n(items_->rows.begin() + items_->draw(random.uniform()) * columns_, columns_, to);
}

}  // namespace lockstep::datasets
