#include "models/zoo/click_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::models {

Initializer table_init(const ClickModelConfig& config) {
  const double bound = std::sqrt(static_cast<double>(config.fields) / static_cast<double>(config.rows));
  return nn::uniform(-bound, bound);
}

nn::EmbeddingConfig table_of(const ClickModelConfig& c, std::int64_t dim, Initializer init) {
  nn::EmbeddingConfig table{.num_embeddings = c.rows + (c.bags.empty() ? 0 : 1),
                            .embedding_dim = dim,
                            .weight_init = std::move(init),
                            .sparse = c.sparse};
  if (!c.bags.empty()) table.padding_idx = c.rows;
  return table;
}

const BagField* IdFields::bag(std::int64_t field) const {
  const auto found = std::ranges::find(bags_, field, &BagField::field);
  return found == bags_.end() ? nullptr : &*found;
}

std::int64_t IdFields::first_column(std::int64_t field) const {
  std::int64_t column = field;
  for (const BagField& one : bags_) column += one.field < field ? one.columns - 1 : 0;
  return column;
}

Value IdFields::vectors(Value rows, Value ids, std::int64_t first, std::int64_t count) const {
  const std::int64_t columns = first_column(first + count) - first_column(first);
  if (columns == count &&
      std::ranges::none_of(bags_, [&](const BagField& one) { return one.field >= first && one.field < first + count; }))
    return rows;
  std::vector<Value> parts;
  std::int64_t column = 0, begin = 0;  // columns [begin, column) have one id each and are in no part yet
  const auto take_single = [&] {
    if (column > begin) parts.push_back(slice(rows, 1, begin, column - begin));
  };
  for (std::int64_t field = first; field < first + count; ++field) {
    const BagField* const one = bag(field);
    if (one == nullptr) {
      ++column;
      continue;
    }
    take_single();
    const Value vectors = slice(rows, 1, column, one->columns), in = slice(ids, 1, column, one->columns);
    parts.push_back(unsqueeze(bag_of_ids(vectors, in, rows_, one->mode), 1));
    begin = column += one->columns;
  }
  take_single();
  return concat(parts, 1);
}

ClickMlp::ClickMlp(const Config& config)
    : last_relu_(config.last_relu), dropout_(config.dropout), layers_(linear_layers(this, config.sizes)) {}

ClickMlp::~ClickMlp() = default;

Value ClickMlp::operator()(Value x) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = (*layers_[i])(x);
    if (i + 1 < layers_.size())
      x = dropout_(relu(x));
    else if (last_relu_)
      x = relu(x);
  }
  return x;
}

std::vector<std::int64_t> layer_sizes(std::int64_t first, const std::vector<std::int64_t>& hidden, std::int64_t last) {
  std::vector<std::int64_t> sizes{first};
  sizes.insert(sizes.end(), hidden.begin(), hidden.end());
  sizes.push_back(last);
  return sizes;
}

FirstOrder::FirstOrder(const ClickModelConfig& c) : fields_(c), ids_(this, "ids", table_of(c, 1, nn::constant(0))) {
  if (c.dense > 0)
    dense_ = std::make_unique<nn::Child<nn::Linear>>(this, "dense", nn::LinearConfig{.in = c.dense, .out = 1});
  else
    bias_ = &add("bias", Parameter{.shape = {1}, .initialize = nn::constant(0), .role = Role::Bias});
}

FirstOrder::~FirstOrder() = default;

Value FirstOrder::operator()(Value ids, Value dense) const {
  const Value of_ids = sum(fields_.vectors(ids_(ids), ids), {1, 2});
  if (dense_ == nullptr) return of_ids + ids.graph().parameter(*bias_);
  return of_ids + squeeze((*dense_)(dense), 1);
}

}  // namespace lockstep::models
