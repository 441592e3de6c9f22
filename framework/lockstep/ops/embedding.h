// Rows of a table by index, as torch.nn.functional.embedding. The gradient of the table is dense.
#pragma once

#include <optional>

#include "lockstep/graph/graph.h"

namespace lockstep {

// (table (V, E), indices of any shape K) -> (K..., E). The row `padding` gets no gradient.
class EmbeddingOp : public Op {
 public:
  // With `masks`, the result is 0 where the index is `padding`: the gradient of EmbeddingGradientOp.
  explicit EmbeddingOp(std::optional<std::int64_t> padding, bool masks = false) : padding_(padding), masks_(masks) {}
  std::optional<std::int64_t> padding() const { return padding_; }
  bool masks() const { return masks_; }
  std::string_view name() const override { return "embedding"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  std::optional<std::int64_t> padding_;
  bool masks_;
};

// (dy (K..., E), indices K) -> dtable (rows, E): the sums over the uses of each row, in the order of the indices, in
// f64; 0 for rows without a use and for the row `padding`.
class EmbeddingGradientOp : public Op {
 public:
  EmbeddingGradientOp(std::int64_t rows, std::optional<std::int64_t> padding) : rows_(rows), padding_(padding) {}
  std::optional<std::int64_t> padding() const { return padding_; }
  std::string_view name() const override { return "embedding_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  std::int64_t rows_;
  std::optional<std::int64_t> padding_;
};

// Returns the rows of `table` (V, E) that the i32 `indices` name, in the shape of the indices with E behind it. Throws
// Error where types do not fit or `padding` is not a row. An index outside [0, V) throws SampleError, which names row,
// position and value, when the plan runs.
Value embedding(Value indices, Value table, std::optional<std::int64_t> padding = {});

}  // namespace lockstep
