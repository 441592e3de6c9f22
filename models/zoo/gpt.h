// GPT: a decoder of Transformer blocks with normalisation in front of each part (Radford et al., "Language models are
// unsupervised multitask learners", 2019), with the options of later models: rotary or ALiBi positions, RMS norm,
// SwiGLU, grouped key heads. Parameters have nanoGPT's names and shapes: transformer.wte.weight,
// transformer.wpe.weight, transformer.h.0.ln_1.weight, .attn.c_attn.weight, .attn.c_proj.weight, .ln_2.weight,
// .mlp.c_fc.weight, .mlp.c_proj.weight, ..., transformer.ln_f.weight, lm_head.weight; with SwiGLU, .mlp is an
// nn::SwiGLU. Initial values are GPT-2's: deviations 0.02 and, of the projections onto the residual stream, 0.02 /
// sqrt(2 layers); biases 0. GELU is GPT-2's approximation by tanh. A block is a unit of recomputation. One thread
// traces a model.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/nn/child.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/vocabulary_cross_entropy.h"

namespace lockstep::models {

enum class GptPositions : std::uint8_t { Learned, Rotary, Alibi };
enum class GptNorm : std::uint8_t { Layer, Rms };
enum class GptMlp : std::uint8_t { Gelu, SwiGlu };

struct GptConfig {
  std::int64_t vocabulary = 257;  // tokens
  std::int64_t context = 256;     // positions
  std::int64_t layers = 4, heads = 4, width = 128;
  std::int64_t key_heads = 0;  // heads of keys and values, which divide `heads`; 0: as many
  // Inside an MLP; 0: 4 width, or with SwiGLU 8/3 width, rounded up to a multiple of 32, so that parameters are as
  // many.
  std::int64_t hidden = 0;
  double dropout = 0;  // of embeddings, attention weights and results of both parts of a block, in [0, 1)
  GptPositions positions = GptPositions::Learned;
  GptNorm norm = GptNorm::Layer;
  GptMlp mlp = GptMlp::Gelu;
  bool bias = true;  // of linear layers and layer norms
  bool tied = true;  // lm_head.weight is transformer.wte.weight
};

// Earlier tokens, in front of tokens (N, T).
struct GptPast {
  struct Layer {
    Value k, v;  // (N, S, G, D) each, where S is the context
  };
  Value offset;     // i32 (N): the number of earlier tokens, of which the layers hold keys and values
  Value positions;  // i32 (N, T): offset, offset + 1, ...
  std::vector<Layer> layers;
};

class Gpt final : public nn::Module {
 public:
  // Throws Error for options out of range.
  explicit Gpt(const GptConfig& config);
  ~Gpt() override;
  const GptConfig& config() const { return config_; }

  // The loss of predicting targets (N, T) from the tokens (N, T) up to each position, without logits in memory.
  VocabularyLoss loss(Value tokens, Value targets, double label_smoothing = 0) const;
  // Logits (N, T, vocabulary), of all positions.
  Value logits(Value tokens) const;

  // Logits (N, vocabulary) of the token behind the last one of tokens (N, T).
  Value next_logits(Value tokens) const;
  // The same behind earlier tokens. Each layer's keys and values of these tokens (N, T, G, D) are observed as
  // "transformer.h.0.attn.k" and ".v" (Graph::observe()).
  Value next_logits(Value tokens, const GptPast& past) const;

 private:
  class Norm;
  class Attention;
  class Mlp;
  class Block;
  class Transformer;
  class Head;
  Value table(Graph& graph) const;  // of the head

  GptConfig config_;
  std::unique_ptr<nn::Child<Transformer>> transformer_;
  std::unique_ptr<nn::Child<Head>> head_;
};

}  // namespace lockstep::models
