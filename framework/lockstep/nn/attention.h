// Multi-head attention with PyTorch's parameter names and initial values, and the gated layer of Llama's blocks. A call
// throws Error with the layer's module path where shapes do not fit. One thread traces a model.
#pragma once

#include <optional>

#include "lockstep/nn/layers.h"
#include "lockstep/ops/attention.h"
#include "lockstep/ops/rotary.h"

namespace lockstep::nn {

struct MultiheadAttentionConfig {
  std::int64_t embed_dim, num_heads;
  std::int64_t key_heads = 0;  // of keys and values; it divides num_heads; 0: num_heads
  bool bias = true;
  double dropout = 0;  // of the attention's weights, in [0, 1)
  bool causal = false;
  std::int64_t window = 0;  // 0: none
  bool alibi = false;
  std::optional<RotaryOptions> rotary = {};  // turns queries and keys; its `heads` and `offset` are set by the layer
  Initializer weight_init = {}, out_weight_init = {};  // of in_proj and out_proj; empty: PyTorch's
};

// Keys and values of earlier positions, for generation: k and v (N, S, G, D), and `offset` i32 (N), the number of
// positions that they hold.
struct AttentionCache {
  Value k, v, offset;
};

// The options of a call, beside those of the layer; see AttentionOptions.
struct AttentionMasks {
  Value lengths = {}, segments = {};
};

// x (N, T, embed_dim) -> (N, T, embed_dim), as torch.nn.MultiheadAttention with batch_first. Parameters:
// in_proj_weight (embed_dim + 2 G D, embed_dim), in_proj_bias, out_proj.weight (embed_dim, embed_dim), out_proj.bias,
// with D = embed_dim / num_heads: rows of queries, then of keys, then of values.
class MultiheadAttention : public Module {
 public:
  using Config = MultiheadAttentionConfig;
  // Throws Error for heads that do not divide embed_dim, or key heads that do not divide heads.
  explicit MultiheadAttention(Config config);
  Value operator()(Value x) const { return (*this)(x, AttentionMasks{}); }
  Value operator()(Value x, const AttentionMasks& masks) const;
  // Attention of `query` (N, T, embed_dim) to `memory` (N, S, embed_dim), without rotary positions.
  Value operator()(Value query, Value memory, const AttentionMasks& masks = {}) const;
  // One step of generation for x (N, T, embed_dim): queries see the cache and themselves. Sets `cache` to the cache
  // with the new keys and values behind those that it holds, of the same S. Positions behind S are an error when the
  // plan runs.
  Value operator()(Value x, AttentionCache& cache) const;

 private:
  std::int64_t width() const { return config_.embed_dim / config_.num_heads; }
  AttentionOptions options(const AttentionMasks& masks) const;
  // Rows [begin, end) of in_proj, applied to x: (N, T, heads, D).
  Value projected(Value x, std::int64_t begin, std::int64_t end) const;
  Value turned(Value x, std::int64_t heads, Value offset = {}) const;
  Value joined(Value heads) const;  // through out_proj

  MultiheadAttentionConfig config_;
  Parameter& in_weight_;
  Parameter* in_bias_;
  Child<Linear> out_proj_;
};

// W_down (silu(W_gate x) * W_up x) (Shazeer, "GLU variants improve transformer", 2020, eq. 6). Parameters: those of the
// linear layers gate_proj, up_proj (hidden, in) and down_proj (in, hidden), Llama's names.
struct SwiGLUConfig {
  std::int64_t in, hidden;
  bool bias = false;
  Initializer weight_init = {}, out_weight_init = {},
              bias_init = {};  // of the first two, of down_proj; empty: PyTorch's
};
class SwiGLU : public Module {
 public:
  using Config = SwiGLUConfig;
  explicit SwiGLU(const Config& config);
  Value operator()(Value x) const;

 private:
  Child<Linear> gate_, up_, down_;
};

}  // namespace lockstep::nn
