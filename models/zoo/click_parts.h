// Parts of which models of clicks are made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "models/zoo/click_model.h"
#include "models/zoo/mlp.h"

namespace lockstep::models {

// The first values of a table: uniform in +-sqrt(1 / n), where n is the mean number of rows of a field (Naumov et al.,
// "Deep learning recommendation model", 2019, as their program does it table by table).
Initializer table_init(const ClickModelConfig& config);

// The table of a model: rows of `dim` elements for all ids, and one more for places of bags that have no id.
nn::EmbeddingConfig table_of(const ClickModelConfig& config, std::int64_t dim, Initializer init);

// Where the fields of ids lie, and the vectors that stand for them.
class IdFields {
 public:
  explicit IdFields(const ClickModelConfig& config) : fields_(config.fields), rows_(config.rows), bags_(config.bags) {}
  std::int64_t first_column(std::int64_t field) const;  // of the ids of a sample
  // Returns one vector for each of the `count` fields from `first` on, (samples, count, elements): of a bag the rows of
  // its ids joined. Both values are of these fields alone: ids (samples, columns), rows (samples, columns, elements).
  Value vectors(Value rows, Value ids, std::int64_t first, std::int64_t count) const;
  Value vectors(Value rows, Value ids) const { return vectors(rows, ids, 0, fields_); }

 private:
  const BagField* bag(std::int64_t field) const;

  std::int64_t fields_, rows_;
  std::vector<BagField> bags_;
};

// Linear layers with ReLU between them, and dropout behind each ReLU. Layers are named as in a PyTorch Sequential of
// Linear and ReLU: "0", "2", "4", ...
class ClickMlp : public nn::Module {
 public:
  struct Config {
    std::vector<std::int64_t> sizes{};  // {13, 64, 16}: inputs, hidden layers, outputs
    double dropout = 0;
    bool last_relu = false;  // a ReLU behind the last layer, too
  };
  explicit ClickMlp(const Config& config);
  ~ClickMlp() override;
  Value operator()(Value x) const;  // (samples, inputs) -> (samples, outputs)

 private:
  bool last_relu_;
  nn::Dropout dropout_;
  LinearLayers layers_;
};

// {first, hidden ..., last}.
std::vector<std::int64_t> layer_sizes(std::int64_t first, const std::vector<std::int64_t>& hidden, std::int64_t last);

// The first-order part of a model: bias + sum of a number per id + sum of dense numbers times weights; logits
// (samples). Parameters: ids.weight (rows, 1), dense.weight, dense.bias; without dense numbers "bias" in their place.
class FirstOrder : public nn::Module {
 public:
  using Config = ClickModelConfig;
  explicit FirstOrder(const ClickModelConfig& config);
  ~FirstOrder() override;
  Value operator()(Value ids, Value dense) const;

 private:
  IdFields fields_;
  nn::Child<nn::Embedding> ids_;
  std::unique_ptr<nn::Child<nn::Linear>> dense_;
  Parameter* bias_ = nullptr;
};

}  // namespace lockstep::models
