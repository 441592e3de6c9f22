// Finds the items with the largest products with a query, by exact search in blocks: vectors of users and items, as two
// towers make them (models/zoo/two_towers.h). Immutable after construction; any thread may search, and a search uses
// the threads of OpenMP.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::infer {

class ItemIndex {
 public:
  // Copies vectors (items, elements), F32. Throws Error at site "top-k" for another shape or type, no items, and values
  // that are not finite.
  explicit ItemIndex(const Tensor& items);

  std::int64_t items() const { return items_; }

  struct Found {
    Tensor items;   // I64 (queries, k): numbers of items, the best one first; of equal products the lower number
    Tensor scores;  // F32 (queries, k): their products with the query
  };
  // Queries are F32 (queries, elements). Throws Error for another shape or type, values that are not finite, and a k
  // outside 1 to the number of items. Products are summed in the order of the elements, so the result does not depend
  // on threads or on the processor's vectors.
  Found search(const Tensor& queries, std::int64_t k) const;

 private:
  void search_one(const float* query, std::int64_t k, std::int64_t* items, float* scores) const;

  std::int64_t items_, elements_;
  std::vector<float> blocks_;  // (blocks, elements, items of a block)
};

}  // namespace lockstep::infer
