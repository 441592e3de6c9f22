// A Transformer encoder of series (time, features): patches of neighbouring steps are tokens, and a linear layer on all
// encoded tokens gives the prediction (Nie et al., "A time series is worth 64 words", 2023, with the channels of a
// patch in one token).
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/layers.h"
#include "models/zoo/encoder_block.h"
#include "models/zoo/field_model.h"

namespace lockstep::models {

struct SeriesEncoderConfig {
  Shape input{}, output{};  // of one sample
  std::int64_t width =
      64;  // features of a token, of which each head has 16 (or one head has all, if 16 does not divide)
  std::int64_t depth = 2;  // blocks
  std::int64_t patch = 0;  // steps of a token; 0: 4, or 1 for series of fewer than 16 steps
  double dropout = 0;
};

// Steps that fill no patch stand in the first token behind zeros. Layers: "embed", "position", "block0", ..., "norm",
// "head".
class SeriesEncoder final : public FieldModel {
 public:
  explicit SeriesEncoder(const SeriesEncoderConfig& config);
  Value operator()(Value input) const override;

 private:
  using Blocks = std::vector<std::unique_ptr<nn::Child<EncoderBlock>>>;
  Blocks blocks(const SeriesEncoderConfig& config);

  Shape series_, output_;
  std::int64_t patch_, tokens_;
  double dropout_;
  Parameter& position_;
  nn::Child<nn::Linear> embed_;
  Blocks blocks_;
  nn::Child<nn::LayerNorm> norm_;
  nn::Child<nn::Linear> head_;
};

FieldModelEntry encoder_entry();

}  // namespace lockstep::models
