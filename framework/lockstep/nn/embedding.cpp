#include "lockstep/nn/embedding.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/table.h"

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

Initializer or_normal(Initializer given) { return given ? std::move(given) : normal(0, 1); }

// The values of an initializer, with a row of zeros.
Initializer zeroed(Initializer draw, std::optional<std::int64_t> zero_row) {
  if (!zero_row) return draw;
  return [zero_row, draw = std::move(draw)](const Shape& shape, std::span<double> values, RandomStream& random) {
    draw(shape, values, random);
    const auto width = static_cast<std::size_t>(shape[1]);
    std::ranges::fill(values.subspan(static_cast<std::size_t>(*zero_row) * width, width), 0.0);
  };
}

std::unique_ptr<Table> make_table(const EmbeddingConfig& c, std::optional<std::int64_t> padding) {
  check(c.num_embeddings >= 1 && c.embedding_dim >= 1, "embedding",
        "a table of {} rows of {} elements, expected at least one of each", c.num_embeddings, c.embedding_dim);
  return std::make_unique<Table>(Table{
      .rows = c.num_embeddings, .width = c.embedding_dim, .initialize = or_normal(c.weight_init), .zero_row = padding});
}

Table* tied_table(const EmbeddingConfig& c) {
  check(c.sparse, "embedding", "a tied table in a layer that is not sparse, expected .sparse = true");
  check(c.tied->rows == c.num_embeddings && c.tied->width == c.embedding_dim, "embedding",
        "the tied table has {} rows of {} elements, expected {} of {}", c.tied->rows, c.tied->width, c.num_embeddings,
        c.embedding_dim);
  return c.tied;
}

}  // namespace

Embedding::Embedding(EmbeddingConfig c) : padding_(padding_row(c)) {
  if (c.tied != nullptr) {
    table_ = tied_table(c);
  } else if (c.sparse) {
    own_ = make_table(c, padding_);
    table_ = own_.get();
  } else {
    weight_ = &add("weight", Parameter{.shape = {c.num_embeddings, c.embedding_dim},
                                       .initialize = zeroed(or_normal(std::move(c.weight_init)), padding_)});
  }
}

Value Embedding::operator()(Value indices) const {
  if (table_ != nullptr) return table_lookup(indices, *table_);
  return embedding(indices, indices.graph().parameter(*weight_), padding_);
}

Parameter& Embedding::weight() const {
  check(weight_ != nullptr, "embedding", "'{}' is sparse and has no dense parameter, expected .sparse = false", path());
  return *weight_;
}

Table& Embedding::table() const {
  check(table_ != nullptr, "embedding", "'{}' has a dense parameter and no sparse table, expected .sparse = true",
        path());
  return *table_;
}

EmbeddingBag::EmbeddingBag(EmbeddingBagConfig c)
    : Embedding({.num_embeddings = c.num_embeddings,
                 .embedding_dim = c.embedding_dim,
                 .padding_idx = c.padding_idx,
                 .weight_init = std::move(c.weight_init),
                 .sparse = c.sparse,
                 .tied = c.tied}),
      mode_(c.mode) {}

Value EmbeddingBag::operator()(Value indices) const {
  constexpr std::int64_t kNone = -1;  // no row has this number
  return bag_of_ids(Embedding::operator()(indices), indices, padding().value_or(kNone), mode_);
}

Value EmbeddingBag::operator()(Value indices, Value counts) const {
  return bag_of_counts(Embedding::operator()(indices), counts, mode_);
}

std::vector<NamedTable> named_tables(const Module& module) {
  std::vector<NamedTable> tables;
  const auto add = [&](const std::string& path, Module* part) {
    auto* const owner = dynamic_cast<TableOwner*>(part);
    if (owner == nullptr || owner->owned_table() == nullptr) return;
    tables.push_back({path.empty() ? "weight" : path + ".weight", owner->owned_table()});
  };
  add("", const_cast<Module*>(&module));
  for (const NamedModule& part : module.named_modules()) add(part.path, part.module);
  return tables;
}

}  // namespace lockstep::nn
