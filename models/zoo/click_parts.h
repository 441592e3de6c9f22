// Parts of which models of clicks are made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "models/zoo/click_model.h"

namespace lockstep::models {

// The first values of a table: uniform in +-sqrt(1 / n), where n is the mean number of rows of a field (Naumov et al.,
// "Deep learning recommendation model", 2019, as their program does it table by table).
Initializer table_init(const ClickModelConfig& config);

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
  std::vector<std::unique_ptr<nn::Child<nn::Linear>>> layers_;
};

// {first, hidden ..., last}.
std::vector<std::int64_t> layer_sizes(std::int64_t first, const std::vector<std::int64_t>& hidden, std::int64_t last);

// Products of all pairs: (samples, vectors, elements) -> (samples, vectors (vectors - 1) / 2), in the order of
// PyTorch's tril_indices(offset=-1): (1, 0), (2, 0), (2, 1), ...
Value pair_products(Value vectors);

// The first-order part of a model: bias + sum of a number per id + sum of dense numbers times weights; logits
// (samples). Parameters: ids.weight (rows, 1), dense.weight, dense.bias; without dense numbers "bias" in their place.
class FirstOrder : public nn::Module {
 public:
  using Config = ClickModelConfig;
  explicit FirstOrder(const ClickModelConfig& config);
  ~FirstOrder() override;
  Value operator()(Value ids, Value dense) const;

 private:
  nn::Child<nn::Embedding> ids_;
  std::unique_ptr<nn::Child<nn::Linear>> dense_;
  Parameter* bias_ = nullptr;
};

}  // namespace lockstep::models
