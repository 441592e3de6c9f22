// Items from outside of the batch, as negatives of two towers: the items of the training samples, drawn for each sample
// by (seed, epoch, sample) with a probability of count^exponent / sum of count^exponent, where count is how often an
// item occurs. Items that have the same row of their first field are one item; of its other fields the first sample
// tells the ids. Any thread may draw.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/datasets/id_rows.h"
#include "lockstep/data/run_data.h"

namespace lockstep::comm {
class Communicator;
}

namespace lockstep::datasets {

// Probabilities of items that occur so often; 0 for those that do not occur. exponent 0: all others are equal.
std::vector<double> item_shares(std::span<const std::int64_t> counts, double exponent);

struct ItemList {
  std::int64_t columns = 0;                 // of ids of an item
  std::vector<std::int32_t> rows{};         // of the table: (items, columns)
  std::vector<double> cumulative{};         // of the probabilities, by item
  std::int64_t draw(double uniform) const;  // the item whose interval of [0, 1) contains `uniform`
};

// Returns the items of the training samples, whose fields are those from `first_field` on. Collective; null: this
// process alone. Throws Error for ids that have no row, and unless there are two items.
ItemList list_items(const data::RunData& data, const IdRows& ids, std::size_t first_field, double exponent,
                    const comm::Communicator* comm);

// Adds a field "negatives" I32 (count, columns), rows of items that are drawn; of a list that is null, 0.
class DrawNegatives : public data::Transform {
 public:
  DrawNegatives(std::int64_t count, std::int64_t columns, std::shared_ptr<const ItemList> items)
      : count_(count), columns_(columns), items_(std::move(items)) {}
  std::vector<data::Field> fields(const std::vector<data::Field>& in) const override;
  void apply(const data::SampleKey& key, const std::vector<data::Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  std::int64_t count_, columns_;
  std::shared_ptr<const ItemList> items_;
};

}  // namespace lockstep::datasets
