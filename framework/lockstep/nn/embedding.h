// Tables of learned rows, looked up by index, with PyTorch's names and initial values: Embedding, and EmbeddingBag,
// which joins several rows of a sample to one. With `sparse`, the gradient of the table is a set of rows
// (graph/table.h): only rows that a batch uses are exchanged and updated, and the table may be sharded over the ranks
// of the job (docs/tables.md).
#pragma once

#include <optional>
#include <vector>

#include "lockstep/graph/table.h"
#include "lockstep/nn/child.h"
#include "lockstep/ops/bag.h"

namespace lockstep::nn {

struct EmbeddingConfig {
  std::int64_t num_embeddings, embedding_dim;
  // A row that starts at 0 and gets no gradient; a negative number counts from the end.
  std::optional<std::int64_t> padding_idx = {};
  // Empty: the standard normal distribution. The padding row is 0, whatever it writes there. A sparse table calls it
  // row by row (Table::initialize), but not for the padding row.
  Initializer weight_init = {};
  bool sparse = false;  // gradients are rows; the table is no dense parameter
  // With `sparse`: the table of another module, which this one uses too (tied); sizes must be equal.
  Table* tied = nullptr;
};

// A module with a sparse table of its own.
class TableOwner {
 public:
  virtual ~TableOwner() = default;
  // The table that this module owns, "weight" in it; null: none.
  virtual Table* owned_table() = 0;
};

// Returns the sparse tables that `module` and the modules below it own, with their full names, in the order of
// Module::named_modules().
std::vector<NamedTable> named_tables(const Module& module);

// Returns the rows of the weight for indices of any shape, with embedding_dim behind it. Indices are i32; with `sparse`
// i32 or i64. Parameter, or table with `sparse`: weight (num_embeddings, embedding_dim). An index outside the table
// throws SampleError when the plan runs; it names field, row, position and value.
class Embedding : public Module, public TableOwner {
 public:
  using Config = EmbeddingConfig;
  // Throws Error for a padding row that is not in the table, and for a tied table of another size.
  explicit Embedding(Config config);
  Value operator()(Value indices) const;
  // Owned by this layer; another module can tie it. Throws Error with `sparse`.
  Parameter& weight() const;
  // The sparse table: this layer's, or the tied one. Throws Error without `sparse`.
  Table& table() const;
  Table* owned_table() override { return own_.get(); }
  std::optional<std::int64_t> padding() const { return padding_; }  // the padding row, from 0 on

 private:
  std::optional<std::int64_t> padding_;
  std::unique_ptr<Table> own_;
  Table* table_ = nullptr;       // with `sparse`
  Parameter* weight_ = nullptr;  // without it
};

struct EmbeddingBagConfig {
  std::int64_t num_embeddings, embedding_dim;
  BagMode mode = BagMode::Mean;  // PyTorch's default
  // The id of entries that a bag does not use: such a row starts at 0 and gets no gradient.
  std::optional<std::int64_t> padding_idx = {};
  Initializer weight_init = {};
  bool sparse = true;
  Table* tied = nullptr;  // see EmbeddingConfig
};

// Returns one row per sample, (N, embedding_dim): the sum, the mean or the largest elements of the rows of its bag. The
// ids are (N, K): K is the capacity of a bag. A bag uses the entries whose id is not padding_idx, all K without one;
// or, with counts (N), its first counts[n] entries. Ids behind them must be row numbers too, such as 0. An empty bag
// gives 0.
class EmbeddingBag : public Embedding {
 public:
  using Config = EmbeddingBagConfig;
  explicit EmbeddingBag(Config config);  // throws as Embedding does
  Value operator()(Value indices) const;
  Value operator()(Value indices, Value counts) const;

 private:
  BagMode mode_;
};

}  // namespace lockstep::nn
