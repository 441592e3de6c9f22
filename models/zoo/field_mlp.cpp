#include "models/zoo/field_mlp.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {

// x + linear2(gelu(linear1(gelu(x)))).
class FieldMlp::Block : public nn::Module {
 public:
  explicit Block(std::int64_t width)
      : linear1_(this, "linear1", {.in = width, .out = width}),
        linear2_(this, "linear2", {.in = width, .out = width}) {}
  Value operator()(Value x) const { return x + linear2_(gelu_tanh(linear1_(gelu_tanh(x)))); }

 private:
  nn::Child<nn::Linear> linear1_, linear2_;
};

FieldMlp::FieldMlp(const FieldMlpConfig& c)
    : output_(c.output),
      in_(this, "in", {.in = c.input.elements(), .out = c.width}),
      out_(this, "out", {.in = c.width, .out = c.output.elements()}) {
  check(c.width > 0 && c.depth >= 0, "mlp", "width {} and depth {}, expected at least 1 and 0", c.width, c.depth);
  for (std::int64_t i = 0; i < c.depth; ++i) {
    blocks_.push_back(std::make_unique<nn::Child<Block>>(this, formatted("block{}", i), c.width));
  }
}

FieldMlp::~FieldMlp() = default;

Value FieldMlp::operator()(Value input) const {
  Value x = in_(flatten(input));
  for (const auto& block : blocks_) x = (*block)(x);
  return reshape(out_(gelu_tanh(x)), output_.batched(input.shape()[0]));
}

FieldModelEntry field_mlp_entry() {
  return {.name = "mlp",
          .description = "any array to any array by a residual multilayer perceptron; width 256, depth 4 blocks",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            FieldMlpConfig config{.input = c.input, .output = c.output};
            if (c.width > 0) config.width = c.width;
            if (c.depth > 0) config.depth = c.depth;
            return std::make_unique<FieldMlp>(config);
          }};
}

}  // namespace lockstep::models
