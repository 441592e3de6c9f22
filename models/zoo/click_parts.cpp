#include "models/zoo/click_parts.h"

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::models {

Initializer table_init(const ClickModelConfig& config) {
  const double bound = std::sqrt(static_cast<double>(config.fields) / static_cast<double>(config.rows));
  return nn::uniform(-bound, bound);
}

ClickMlp::ClickMlp(const Config& config) : last_relu_(config.last_relu), dropout_(config.dropout) {
  check(config.sizes.size() >= 2, "mlp", "{} sizes, expected at least those of input and output", config.sizes.size());
  for (const std::int64_t size : config.sizes) check(size > 0, "mlp", "a layer of size {}, expected at least 1", size);
  for (std::size_t i = 0; i + 1 < config.sizes.size(); ++i) {
    const nn::LinearConfig layer{.in = config.sizes[i], .out = config.sizes[i + 1]};
    layers_.push_back(std::make_unique<nn::Child<nn::Linear>>(this, std::to_string(2 * i), layer));
  }
}

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

Value pair_products(Value vectors) {
  const std::int64_t samples = vectors.shape()[0], count = vectors.shape()[1];
  const DType type = vectors.dtype();
  const Value products = reshape(matmul(vectors, vectors, false, true), Shape{samples, count * count});
  std::vector<Value> rows;
  for (std::int64_t i = 1; i < count; ++i) rows.push_back(slice(products, 1, i * count, i));
  return cast(concat(rows, 1), type);  // a product of matrices may be bf16
}

FirstOrder::FirstOrder(const ClickModelConfig& c)
    : ids_(this, "ids",
           {.num_embeddings = c.rows, .embedding_dim = 1, .weight_init = nn::constant(0), .sparse = c.sparse}) {
  if (c.dense > 0)
    dense_ = std::make_unique<nn::Child<nn::Linear>>(this, "dense", nn::LinearConfig{.in = c.dense, .out = 1});
  else
    bias_ = &add("bias", Parameter{.shape = {1}, .initialize = nn::constant(0), .role = Role::Bias});
}

FirstOrder::~FirstOrder() = default;

Value FirstOrder::operator()(Value ids, Value dense) const {
  const Value of_ids = sum(ids_(ids), {1, 2});
  if (dense_ == nullptr) return of_ids + ids.graph().parameter(*bias_);
  return of_ids + squeeze((*dense_)(dense), 1);
}

}  // namespace lockstep::models
