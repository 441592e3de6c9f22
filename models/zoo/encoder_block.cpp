#include "models/zoo/encoder_block.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::models {
namespace {

const EncoderBlockConfig& checked(const EncoderBlockConfig& c) {
  check(c.width >= 1 && c.heads >= 1 && c.width % c.heads == 0 && c.hidden >= 1, "encoder_block",
        "width {}, {} heads, {} features inside the MLP: expected at least 1 of each, and heads that divide the width",
        c.width, c.heads, c.hidden);
  check(c.dropout >= 0 && c.dropout < 1 && c.stochastic_depth >= 0 && c.stochastic_depth < 1, "encoder_block",
        "dropout {} and stochastic depth {}, expected numbers in [0, 1)", c.dropout, c.stochastic_depth);
  return c;
}

nn::LayerNormConfig norm_config(const EncoderBlockConfig& c) { return {.shape = {c.width}, .epsilon = c.epsilon}; }

nn::LinearConfig mlp_config(std::int64_t in, std::int64_t out) {
  return {.in = in, .out = out, .weight_init = nn::xavier_uniform(), .bias_init = nn::normal(0, 1e-6)};
}

}  // namespace

EncoderBlock::EncoderBlock(const EncoderBlockConfig& c)
    : config_(checked(c)),
      ln_1_(this, "ln_1", norm_config(c)),
      self_attention_(this, "self_attention",
                      nn::MultiheadAttentionConfig{.embed_dim = c.width, .num_heads = c.heads, .dropout = c.dropout}),
      ln_2_(this, "ln_2", norm_config(c)),
      mlp_(this, "mlp") {
  mlp_.append<nn::Linear>(mlp_config(c.width, c.hidden)).append(gelu).append<nn::Dropout>(c.dropout);
  mlp_.append<nn::Linear>(mlp_config(c.hidden, c.width)).append<nn::Dropout>(c.dropout);
}

Value EncoderBlock::operator()(Value x) const {
  const auto in_block = block(x);
  x = x + kept(dropout(self_attention_(ln_1_(x)), config_.dropout, path() + ".dropout"), ".depth_1");
  return x + kept(mlp_(ln_2_(x)), ".depth_2");
}

Value EncoderBlock::kept(Value part, const char* which) const {
  Graph& graph = part.graph();
  if (!graph.training() || config_.stochastic_depth == 0) return part;
  const Value ones = fill(graph, {Shape{part.shape()[0], 1, 1}, graph.dtype()}, 1);
  return part * dropout(ones, config_.stochastic_depth, path() + which);
}

}  // namespace lockstep::models
