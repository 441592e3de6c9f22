// Ops that read indices, which are the graph's input "target".
#include <algorithm>

#include "lockstep/ops/bag.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/reshape.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

Value indices(Value beside, Shape shape) {
  const Value flat = beside.graph().input("target", {Shape{shape.elements()}, DType::I32});
  return reshape(flat, std::move(shape));
}

const std::vector<std::int32_t> kRows{1, 4, 1, 0, 2, 1};
const std::vector<std::int32_t> kBagIds{0, 2, 1, 3, 3, 3, 2, 0, 3};  // 3 is the padding: the second bag is empty
const std::vector<std::int32_t> kBagCounts{2, 0, 3};

// Bags of x (3, 3, 2), of which `uses` tells the entries.
Array bags_of(const Array& x, BagMode mode, const std::function<bool(std::int64_t bag, std::int64_t entry)>& uses) {
  Array y(Shape{3, 2});
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t c = 0; c < 2; ++c) {
      double total = 0, used = 0;
      for (std::int64_t k = 0; k < 3; ++k) {
        if (!uses(b, k)) continue;
        const double value = x[(b * 3 + k) * 2 + c];
        total = mode != BagMode::Max ? total + value : used == 0 ? value : std::max(total, value);
        ++used;
      }
      y[b * 2 + c] = mode == BagMode::Mean && used > 0 ? total / used : total;
    }
  }
  return y;
}

Row bag_row(std::string op, std::string config, BagMode mode, bool by_ids) {
  return {.op = std::move(op),
          .config = std::move(config),
          .operands = {{Shape{3, 3, 2}}},
          .trace =
              [mode, by_ids](auto v) {
                return by_ids ? bag_of_ids(v[0], indices(v[0], Shape{3, 3}), 3, mode)
                              : bag_of_counts(v[0], indices(v[0], Shape{3}), mode);
              },
          .reference =
              [mode, by_ids](auto in) {
                return bags_of(in[0], mode, [by_ids](std::int64_t bag, std::int64_t entry) {
                  return by_ids ? kBagIds[static_cast<std::size_t>(bag * 3 + entry)] != 3
                                : entry < kBagCounts[static_cast<std::size_t>(bag)];
                });
              },
          .targets = by_ids ? kBagIds : kBagCounts};
}

const std::vector<std::int32_t> kGathered{3, 0, 0, 2, 1, 1, 3, 3, 2, 0, 0, 1, 2, 3, 0, 0, 1, 1, 2, 0, 3, 2, 1, 0};

}  // namespace

std::vector<Row> index_rows() {
  return {
      {.op = "index_select",
       .config = "inner_axis",
       .operands = {{Shape{2, 5, 3}}},
       .trace = [](auto v) { return index_select(v[0], 1, indices(v[0], Shape{6})); },
       .reference =
           [](auto in) {
             Array y(Shape{2, 6, 3});
             for (std::int64_t i = 0; i < 36; ++i)
               y[i] = in[0][(i / 18 * 5 + kRows[static_cast<std::size_t>(i / 3 % 6)]) * 3 + i % 3];
             return y;
           },
       .targets = kRows},
      {.op = "index_select",
       .config = "last_axis_by_a_matrix",
       .operands = {{Shape{4, 5}}},
       .trace =
           [](auto v) {
             return index_select(v[0], -1, indices(v[0], Shape{3, 2}));
           },
       .reference =
           [](auto in) {
             Array y(Shape{4, 3, 2});
             for (std::int64_t i = 0; i < 24; ++i) y[i] = in[0][i / 6 * 5 + kRows[static_cast<std::size_t>(i % 6)]];
             return y;
           },
       .targets = kRows},
      {.op = "embedding",
       .config = "rows_used_often_and_never",
       .operands = {{Shape{5, 3}}},
       .trace =
           [](auto v) {
             return embedding(indices(v[0], Shape{2, 3}), v[0]);
           },
       .reference =
           [](auto in) {
             Array y(Shape{2, 3, 3});
             for (std::int64_t i = 0; i < 18; ++i) y[i] = in[0][kRows[static_cast<std::size_t>(i / 3)] * 3 + i % 3];
             return y;
           },
       .targets = kRows},
      bag_row("bag", "sum_without_padding", BagMode::Sum, true),
      bag_row("bag", "mean_without_padding", BagMode::Mean, true),
      bag_row("bag", "mean_of_counts", BagMode::Mean, false),
      bag_row("bag_max", "without_padding", BagMode::Max, true),
      bag_row("bag_max", "of_counts", BagMode::Max, false),
      {.op = "gather",
       .config = "inner_axis",
       .operands = {{Shape{3, 4, 2}}},
       .trace =
           [](auto v) {
             return gather(v[0], 1, indices(v[0], Shape{2, 6, 2}));
           },
       .reference =
           [](auto in) {
             Array y(Shape{2, 6, 2});
             for (std::int64_t i = 0; i < 24; ++i)
               y[i] = in[0][(i / 12 * 4 + kGathered[static_cast<std::size_t>(i)]) * 2 + i % 2];
             return y;
           },
       .targets = kGathered},
      {.op = "gather",
       .config = "first_axis",
       .operands = {{Shape{4, 5}}},
       .trace =
           [](auto v) {
             return gather(v[0], 0, indices(v[0], Shape{8, 3}));
           },
       .reference =
           [](auto in) {
             Array y(Shape{8, 3});
             for (std::int64_t i = 0; i < 24; ++i) y[i] = in[0][kGathered[static_cast<std::size_t>(i)] * 5 + i % 3];
             return y;
           },
       .targets = kGathered},
  };
}

}  // namespace lockstep::optest
