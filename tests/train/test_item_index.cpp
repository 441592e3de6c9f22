// Exact search against sorting all products.
#include "lockstep/infer/item_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::infer {
namespace {

Tensor vectors(std::int64_t count, std::int64_t elements, std::uint64_t seed) {
  Tensor t({count, elements}, DType::F32);
  RandomStream random(seed, 0);
  for (float& x : t.data<float>()) x = static_cast<float>(std::floor(random.uniform(-3, 4)));  // many equal products
  return t;
}

TEST(ItemIndex, FindsWhatSortingFinds) {
  for (const auto& [items, elements] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {64, 1}, {200, 5}}) {
    const Tensor all = vectors(items, elements, 3), queries = vectors(7, elements, 4);
    const ItemIndex index(all);
    for (const std::int64_t k : {std::int64_t{1}, std::min<std::int64_t>(10, items), items}) {
      const ItemIndex::Found found = index.search(queries, k);
      for (std::int64_t q = 0; q < 7; ++q) {
        std::vector<float> products;
        for (std::int64_t i = 0; i < items; ++i) {
          float product = 0;
          for (std::int64_t e = 0; e < elements; ++e)
            product += queries.data<float>()[static_cast<std::size_t>(q * elements + e)] *
                       all.data<float>()[static_cast<std::size_t>(i * elements + e)];
          products.push_back(product);
        }
        std::vector<std::int64_t> order(static_cast<std::size_t>(items));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, std::ranges::greater(),
                                 [&](std::int64_t i) { return products[static_cast<std::size_t>(i)]; });
        for (std::int64_t i = 0; i < k; ++i) {
          const auto place = static_cast<std::size_t>(q * k + i);
          const std::int64_t item = order[static_cast<std::size_t>(i)];
          ASSERT_EQ(found.items.data<std::int64_t>()[place], item) << items << " " << k << " " << q << " " << i;
          ASSERT_EQ(found.scores.data<float>()[place], products[static_cast<std::size_t>(item)]);
        }
      }
    }
  }
}

TEST(ItemIndex, NamesWhatDoesNotFit) {
  const ItemIndex index(vectors(5, 3, 1));
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { index.search(vectors(2, 4, 1), 1); }),
            "[top-k] the queries have 4 elements, expected 3 as the items");
  EXPECT_EQ(message([&] { index.search(vectors(2, 3, 1), 6); }),
            "[top-k] k is 6, expected 1 to 5, the number of items");
  Tensor bad = vectors(2, 3, 1);
  bad.data<float>()[4] = std::nanf("");
  EXPECT_EQ(message([&] { index.search(bad, 1); }),
            "[top-k] vector 1 of the queries has the element nan, expected finite numbers");
}

}  // namespace
}  // namespace lockstep::infer
