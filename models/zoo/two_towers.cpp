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

const ClickModelConfig& checked_towers(const ClickModelConfig& c) {
  check(
      c.user_fields >= 1 && c.user_fields < c.fields, "towers",
      "{} of {} fields of ids are the user's (--user-fields), expected at least one for the user and one for the item",
      c.user_fields, c.fields);
  check(std::ranges::find(c.bags, c.user_fields, &BagField::field) == c.bags.end(), "towers",
        "the first field of the item, number {}, is a bag; expected a field with one id, which tells items apart",
        c.user_fields);
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
Parameter frequencies(const std::vector<double>& counts) {
  const auto fill = [counts](const Shape&, std::span<double> values, RandomStream&) {
    double all = 0;
    for (const double count : counts) all += count;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = math::log(std::max(counts[i], 1.0) / std::max(all, 1.0));
  };
  return {.shape = {std::ssize(counts), 1}, .initialize = fill, .role = Role::Buffer, .trainable = false};
}

}  // namespace

TwoTowers::TwoTowers(const ClickModelConfig& c)
    : config_(checked_towers(c)),
      temperature_(c.temperature),
      fields_(c),
      table_(this, "table", table_of(c, c.dim, table_init(c))),
      user_(this, "user", tower_of(c, c.user_fields * c.dim + c.dense)),
      item_(this, "item", tower_of(c, (c.fields - c.user_fields) * c.dim)) {
  if (!c.item_counts.empty()) log_q_ = &add("log_q", frequencies(c.item_counts));
}

Value TwoTowers::tower(const nn::Child<ClickMlp>& mlp, Value ids, Range fields, Value dense) const {
  const Value rows = flatten(fields_.vectors(table_(ids), ids, fields.begin, fields.size()));
  const Value vector = mlp(dense ? concat({rows, dense}, 1) : rows);
  return vector / sqrt(sum(square(vector), {1}, true) + 1e-12);
}

Value TwoTowers::user(const ClickInputs& in) const {
  return tower(user_, slice(in.ids, 1, 0, fields_.first_column(config_.user_fields)), {0, config_.user_fields},
               in.dense);
}

Value TwoTowers::item_columns(Value ids) const {
  const std::int64_t first = fields_.first_column(config_.user_fields);
  return slice(ids, 1, first, ids.shape()[1] - first);
}

Value TwoTowers::item_vectors(Value columns) const {
  return tower(item_, columns, {config_.user_fields, config_.fields}, {});
}

Value TwoTowers::log_q(Value item_ids) const {
  if (log_q_ == nullptr) return {};
  return squeeze(embedding(item_ids, item_ids.graph().parameter(*log_q_)), 1);
}

Value TwoTowers::operator()(const ClickInputs& in) const { return sum(user(in) * item(in), {1}) * (1 / temperature_); }

ClickModelEntry two_towers_entry() {
  return {
      .name = "towers",
      .description = "a vector of the user and one of the item, whose product is the logit; --top 64",
      .build = [](const ClickModelConfig& c) -> std::unique_ptr<ClickModel> { return std::make_unique<TwoTowers>(c); },
      .reads = {"user-fields", "temperature"}};
}

}  // namespace lockstep::models
