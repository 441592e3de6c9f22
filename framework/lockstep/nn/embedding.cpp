#include "lockstep/nn/embedding.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/embedding.h"

namespace lockstep::nn {
namespace {

std::optional<std::int64_t> padding_row(const EmbeddingConfig& c) {
  if (!c.padding_idx) return {};
  const std::int64_t row = *c.padding_idx;
  check(row >= -c.num_embeddings && row < c.num_embeddings, "embedding",
        "the padding row is {}, expected {} to {}, as the table has {} rows", row, -c.num_embeddings,
        c.num_embeddings - 1, c.num_embeddings);
  return row < 0 ? row + c.num_embeddings : row;
}

// The standard normal distribution, with a row of zeros.
Initializer normal_but(std::optional<std::int64_t> zero_row) {
  return [zero_row, draw = normal(0, 1)](const Shape& shape, std::span<double> values, RandomStream& random) {
    draw(shape, values, random);
    if (!zero_row) return;
    const auto width = static_cast<std::size_t>(shape[1]);
    std::ranges::fill(values.subspan(static_cast<std::size_t>(*zero_row) * width, width), 0.0);
  };
}

}  // namespace

Embedding::Embedding(EmbeddingConfig c)
    : padding_(padding_row(c)),
      weight_(add("weight", Parameter{.shape = {c.num_embeddings, c.embedding_dim},
                                      .initialize = c.weight_init ? std::move(c.weight_init) : normal_but(padding_)})) {
}

Value Embedding::operator()(Value indices) const {
  return embedding(indices, indices.graph().parameter(weight_), padding_);
}

}  // namespace lockstep::nn
