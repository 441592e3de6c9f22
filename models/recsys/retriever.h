// Top-k retrieval of two towers: the items that occur in the predicted samples, their vectors, and for each sample
// those with the largest scores.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/array_datasets.h"
#include "lockstep/infer/item_index.h"
#include "lockstep/train/run/session.h"

namespace lockstep::recsys {

class Retriever {
 public:
  // Items are what the fields of ids from `first_field` on say.
  Retriever(std::int64_t k, std::int64_t first_field) : k_(k), first_field_(first_field) {}

  // Reads the different items of session.data().predicted(), of which each rank reads a part, and computes their
  // vectors with the weights that the session has loaded. Collective; throws AgreedError for fewer than k items.
  void prepare(train::Session& session);

  // Of predictions (samples, 2 dim), vectors of users and items, returns "item" I64 (samples, k), the ids as the data
  // has them, the best first, and "score" F32 (samples, k), the products of the vectors. With several columns
  // of ids of an item, "item" is (samples, k, columns), and -1 where a bag has no id.
  std::vector<data::NamedTensor> decode(const Tensor& prediction) const;

 private:
  std::vector<std::int64_t> find_samples(const train::Session& session);

  std::int64_t k_, first_field_, width_ = 0;
  std::vector<std::int64_t> ids_;  // of the items, `width_` for each, in ascending order
  std::unique_ptr<infer::ItemIndex> index_;
};

}  // namespace lockstep::recsys
