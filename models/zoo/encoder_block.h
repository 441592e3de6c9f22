// A block of a Transformer encoder with normalisation in front of both parts, as torchvision's ViT has it: x +
// self_attention(ln_1(x)), then x + mlp(ln_2(x)). Parameters: ln_1, self_attention (nn::MultiheadAttention), ln_2, and
// the linear layers mlp.0 and mlp.3. A block is a unit of recomputation. One thread traces a model.
#pragma once

#include "lockstep/nn/attention.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"

namespace lockstep::models {

struct EncoderBlockConfig {
  std::int64_t width, heads, hidden;
  double dropout = 0;  // of the results of both parts, inside the MLP and of attention weights, in [0, 1)
  // In training each part is left out for a sample with this probability, in [0, 1), else divided by 1 - probability
  // (Huang et al., "Deep networks with stochastic depth", 2016, as torchvision's StochasticDepth with mode "row").
  double stochastic_depth = 0;
  double epsilon = 1e-6;  // of the norms
};

class EncoderBlock : public nn::Module {
 public:
  using Config = EncoderBlockConfig;
  // Throws Error for heads that do not divide the width, and probabilities out of range.
  explicit EncoderBlock(const EncoderBlockConfig& config);
  Value operator()(Value x) const;  // (N, T, width) -> (N, T, width)

 private:
  Value kept(Value part, const char* which) const;

  EncoderBlockConfig config_;
  nn::Child<nn::LayerNorm> ln_1_;
  nn::Child<nn::MultiheadAttention> self_attention_;
  nn::Child<nn::LayerNorm> ln_2_;
  nn::Child<nn::Sequential> mlp_;
};

}  // namespace lockstep::models
