// A table of learned rows, looked up by index, with PyTorch's names and initial values.
#pragma once

#include <optional>

#include "lockstep/nn/child.h"

namespace lockstep::nn {

struct EmbeddingConfig {
  std::int64_t num_embeddings, embedding_dim;
  // A row that starts at 0 and gets no gradient; a negative number counts from the end.
  std::optional<std::int64_t> padding_idx = {};
  Initializer weight_init = {};  // empty: the standard normal distribution, and 0 in the padding row
};

// Returns the rows of the weight for i32 indices of any shape, with embedding_dim behind it. Parameter: weight
// (num_embeddings, embedding_dim). An index outside the table throws SampleError when the plan runs; it names row,
// position and value.
class Embedding : public Module {
 public:
  using Config = EmbeddingConfig;
  // Throws Error for a padding row that is not in the table.
  explicit Embedding(Config config);
  Value operator()(Value indices) const;
  Parameter& weight() const { return weight_; }  // owned by this layer; another module can tie it

 private:
  std::optional<std::int64_t> padding_;  // from 0 on
  Parameter& weight_;
};

}  // namespace lockstep::nn
