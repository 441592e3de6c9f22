#include "lockstep/infer/item_index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::infer {
namespace {

constexpr std::string_view kSite = "top-k";
constexpr std::int64_t kBlock = 64;  // items whose products are computed together

void check_vectors(std::string_view what, const Tensor& vectors) {
  check(vectors.dtype() == DType::F32 && vectors.shape().rank() == 2, kSite,
        "{} are {}{}, expected f32 (vectors, elements)", what, name_of(vectors.dtype()), vectors.shape().str());
  const auto values = vectors.data<float>();
  const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (bad != values.end())
    fail(kSite, "vector {} of {} has the element {}, expected finite numbers",
         (bad - values.begin()) / vectors.shape()[1], what, *bad);
}

using Entry = std::pair<float, std::int64_t>;  // score and item
bool is_better(const Entry& a, const Entry& b) {
  return a.first > b.first || (a.first == b.first && a.second < b.second);
}

}  // namespace

ItemIndex::ItemIndex(const Tensor& items) {
  check_vectors("the items", items);
  items_ = items.shape()[0];
  elements_ = items.shape()[1];
  check(items_ > 0, kSite, "there are no items, expected at least one");
  const std::int64_t blocks = (items_ + kBlock - 1) / kBlock;
  blocks_.resize(static_cast<std::size_t>(blocks * elements_ * kBlock));
  const auto from = items.data<float>();
  for (std::int64_t i = 0; i < items_; ++i) {
    float* const to = blocks_.data() + i / kBlock * elements_ * kBlock + i % kBlock;
    for (std::int64_t e = 0; e < elements_; ++e) to[e * kBlock] = from[static_cast<std::size_t>(i * elements_ + e)];
  }
}

void ItemIndex::search_one(const float* query, std::int64_t k, std::int64_t* items, float* scores) const {
  std::vector<Entry> best;  // a heap whose first entry is the worst one
  best.reserve(static_cast<std::size_t>(k) + 1);
  for (std::int64_t first = 0; first < items_; first += kBlock) {
    const float* const block = blocks_.data() + first * elements_;
    std::array<float, kBlock> products{};
    for (std::int64_t e = 0; e < elements_; ++e) {
      const float q = query[e];
      for (std::int64_t i = 0; i < kBlock; ++i) products[static_cast<std::size_t>(i)] += q * block[e * kBlock + i];
    }
    for (std::int64_t i = 0; i < std::min(kBlock, items_ - first); ++i) {
      const Entry entry{products[static_cast<std::size_t>(i)], first + i};
      if (std::ssize(best) == k && !is_better(entry, best.front())) continue;
      best.push_back(entry);
      std::ranges::push_heap(best, is_better);
      if (std::ssize(best) <= k) continue;
      std::ranges::pop_heap(best, is_better);
      best.pop_back();
    }
  }
  std::ranges::sort(best, is_better);
  for (std::size_t i = 0; i < best.size(); ++i) std::tie(scores[i], items[i]) = best[i];
}

ItemIndex::Found ItemIndex::search(const Tensor& queries, std::int64_t k) const {
  check_vectors("the queries", queries);
  check(queries.shape()[1] == elements_, kSite, "the queries have {} elements, expected {} as the items",
        queries.shape()[1], elements_);
  check(k >= 1 && k <= items_, kSite, "k is {}, expected 1 to {}, the number of items", k, items_);
  const std::int64_t count = queries.shape()[0];
  Found found{Tensor({count, k}, DType::I64), Tensor({count, k}, DType::F32)};
  const float* const from = queries.data<float>().data();
  std::int64_t* const items = found.items.data<std::int64_t>().data();
  float* const scores = found.scores.data<float>().data();
  parallel_for(count, items_ * elements_, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t q = begin; q < end; ++q) search_one(from + q * elements_, k, items + q * k, scores + q * k);
  });
  return found;
}

}  // namespace lockstep::infer
