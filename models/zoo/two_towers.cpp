#include "models/zoo/two_towers.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::models {
namespace {

const ClickModelConfig& checked(const ClickModelConfig& c) {
  check(
      c.user_fields >= 1 && c.user_fields < c.fields, "towers",
      "{} of {} fields of ids are the user's (--user-fields), expected at least one for the user and one for the item",
      c.user_fields, c.fields);
  check(c.temperature > 0, "towers", "the temperature is {}, expected more than 0", c.temperature);
  check(c.item_counts.empty() || std::ssize(c.item_counts) == c.rows, "towers",
        "{} frequencies of items for a table of {} rows, expected one each", c.item_counts.size(), c.rows);
  return c;
}

ClickMlp::Config tower_of(const ClickModelConfig& c, std::int64_t inputs) {
  const std::vector<std::int64_t> hidden = c.top.empty() ? std::vector<std::int64_t>{64} : c.top;
  return {.sizes = layer_sizes(inputs, hidden, c.dim), .dropout = c.dropout};
}

// log(count / all), of rows that never occur as if they did once.
Parameter frequencies(const std::vector<std::int64_t>& counts) {
  const auto fill = [counts](const Shape&, std::span<double> values, RandomStream&) {
    double all = 0;
    for (const std::int64_t count : counts) all += static_cast<double>(count);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = math::log(static_cast<double>(std::max<std::int64_t>(counts[i], 1)) / std::max(all, 1.0));
  };
  return {.shape = {std::ssize(counts), 1}, .initialize = fill, .role = Role::Buffer, .trainable = false};
}

}  // namespace

TwoTowers::TwoTowers(const ClickModelConfig& c)
    : config_(checked(c)),
      temperature_(c.temperature),
      table_(this, "table",
             {.num_embeddings = c.rows, .embedding_dim = c.dim, .weight_init = table_init(c), .sparse = c.sparse}),
      user_(this, "user", tower_of(c, c.user_fields * c.dim + c.dense)),
      item_(this, "item", tower_of(c, (c.fields - c.user_fields) * c.dim)) {
  if (!c.item_counts.empty()) log_q_ = &add("log_q", frequencies(c.item_counts));
}

Value TwoTowers::tower(const nn::Child<ClickMlp>& mlp, Value ids, Value dense) const {
  const Value rows = flatten(table_(ids));
  const Value vector = mlp(dense ? concat({rows, dense}, 1) : rows);
  return vector / sqrt(sum(square(vector), {1}, true) + 1e-12);
}

Value TwoTowers::user(const ClickInputs& in) const {
  return tower(user_, slice(in.ids, 1, 0, config_.user_fields), in.dense);
}

Value TwoTowers::item(const ClickInputs& in) const {
  return tower(item_, slice(in.ids, 1, config_.user_fields, config_.fields - config_.user_fields), {});
}

Value TwoTowers::item_ids(const ClickInputs& in) const { return select(in.ids, 1, config_.user_fields); }

Value TwoTowers::log_q(const ClickInputs& in) const {
  if (log_q_ == nullptr) return {};
  return squeeze(embedding(item_ids(in), in.ids.graph().parameter(*log_q_)), 1);
}

Value TwoTowers::operator()(const ClickInputs& in) const { return sum(user(in) * item(in), {1}) * (1 / temperature_); }

ClickModelEntry two_towers_entry() {
  return {
      .name = "towers",
      .description = "a vector of the user and one of the item, whose product is the logit; --top 64",
      .build = [](const ClickModelConfig& c) -> std::unique_ptr<ClickModel> { return std::make_unique<TwoTowers>(c); }};
}

}  // namespace lockstep::models
