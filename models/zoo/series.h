// Models of series (time, features), or (time) alone: they read all steps and predict from the state after the last
// one, for instance the next values (features), or those of several steps (steps, features).
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lockstep/nn/layers.h"
#include "lockstep/nn/recurrent.h"
#include "models/zoo/field_model.h"

namespace lockstep::models {

// Returns (time, features) of a sample's input, which is that or (time). Throws Error at `site` for another shape.
Shape series_shape(std::string_view site, const Shape& input);

struct ForecasterConfig {
  Shape input{}, output{};  // of one sample
  std::int64_t width = 64;  // features of a recurrent layer
  std::int64_t depth = 1;   // layers
  double dropout = 0;       // between layers
};

// Recurrent layers, and a linear layer on the last one's final state. Layers: "lstm" or "gru", "head".
template <class Recurrent>
class Forecaster final : public FieldModel {
 public:
  explicit Forecaster(const ForecasterConfig& config);
  Value operator()(Value input) const override;

 private:
  Shape series_, output_;
  nn::Child<Recurrent> recurrent_;
  nn::Child<nn::Linear> head_;
};

extern template class Forecaster<nn::LSTM>;
extern template class Forecaster<nn::GRU>;

struct TemporalCnnConfig {
  Shape input{}, output{};
  std::int64_t width = 64;  // channels
  // Blocks; each reads twice as many steps as the one before. 0: as many as the last step needs to see the first one.
  std::int64_t depth = 0;
  std::int64_t kernel = 3;  // steps that a convolution reads
  double dropout = 0;       // behind each convolution
};

// 1-D convolutions over time that see no later step, with dilations 1, 2, 4, ... (Bai, Kolter and Koltun, "An empirical
// evaluation of generic convolutional and recurrent networks for sequence modeling", 2018, without weight norm), and a
// linear layer on the last step. Layers: "block0.conv1", "block0.conv2", "block0.project", ..., "head".
class TemporalCnn final : public FieldModel {
 public:
  explicit TemporalCnn(const TemporalCnnConfig& config);
  ~TemporalCnn() override;
  Value operator()(Value input) const override;

 private:
  class Block;
  using Blocks = std::vector<std::unique_ptr<nn::Child<Block>>>;
  Blocks blocks(const TemporalCnnConfig& config);

  Shape series_, output_;
  Blocks blocks_;
  nn::Child<nn::Linear> head_;
};

FieldModelEntry lstm_entry();
FieldModelEntry gru_entry();
FieldModelEntry tcn_entry();

}  // namespace lockstep::models
