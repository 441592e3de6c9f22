#include "models/zoo/deepfm.h"

#include "lockstep/nn/init.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

ClickMlp::Config deep_of(const ClickModelConfig& c) {
  const std::vector<std::int64_t> hidden = c.top.empty() ? std::vector<std::int64_t>{128, 64} : c.top;
  return {.sizes = layer_sizes(c.fields * c.dim + c.dense, hidden, 1), .dropout = c.dropout};
}

}  // namespace

Value second_order(Value vectors) { return 0.5 * (sum(square(sum(vectors, {1})), {1}) - sum(square(vectors), {1, 2})); }

DeepFm::DeepFm(const ClickModelConfig& c, bool pairs)
    : first_(this, "first", c),
      fields_(c),
      table_(this, "table", table_of(c, c.dim, table_init(c))),
      deep_(this, "deep", deep_of(c)),
      pairs_(pairs) {
  if (pairs && c.dense > 0)
    dense_ = &add("dense", Parameter{.shape = {c.dense, c.dim}, .initialize = nn::normal(0, 0.1)});
}

Value DeepFm::operator()(const ClickInputs& in) const {
  const Value rows = fields_.vectors(table_(in.ids), in.ids), flat = flatten(rows);
  Value logits = first_(in.ids, in.dense) + squeeze(deep_(in.dense ? concat({flat, in.dense}, 1) : flat), 1);
  if (!pairs_) return logits;
  if (dense_ == nullptr) return logits + second_order(rows);
  const Value of_dense = unsqueeze(in.dense, 2) * in.dense.graph().parameter(*dense_);
  return logits + second_order(concat({rows, of_dense}, 1));
}

ClickModelEntry deepfm_entry() {
  return {.name = "deepfm",
          .description = "a factorisation machine and a perceptron that share the table; --top 128,64",
          .build = [](const ClickModelConfig& c) -> std::unique_ptr<ClickModel> {
            return std::make_unique<DeepFm>(c, true);
          }};
}

ClickModelEntry wide_deep_entry() {
  return {.name = "wide-deep",
          .description = "a linear model of ids and dense numbers beside a perceptron; --top 128,64",
          .build = [](const ClickModelConfig& c) -> std::unique_ptr<ClickModel> {
            return std::make_unique<DeepFm>(c, false);
          }};
}

}  // namespace lockstep::models
