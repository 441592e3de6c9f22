// A multilayer perceptron with residual connections on flattened samples: for tables, for small fields, and for fields
// to numbers. Layers: "in", "block0.linear1", "block0.linear2", ..., "out".
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/layers.h"
#include "models/zoo/field_model.h"

namespace lockstep::models {

struct FieldMlpConfig {
  Shape input, output;
  std::int64_t width = 256;
  std::int64_t depth = 4;  // blocks of two layers between the first and the last layer
};

class FieldMlp final : public FieldModel {
 public:
  explicit FieldMlp(const FieldMlpConfig& config);
  ~FieldMlp() override;
  Value operator()(Value input) const override;

 private:
  class Block;
  Shape output_;
  nn::Child<nn::Linear> in_, out_;
  std::vector<std::unique_ptr<nn::Child<Block>>> blocks_;
};

FieldModelEntry field_mlp_entry();

}  // namespace lockstep::models
