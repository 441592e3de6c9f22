#include "models/zoo/gpt.h"

#include <cmath>
#include <optional>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/nn/attention.h"
#include "lockstep/ops/attention.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/rotary.h"
#include "lockstep/ops/row_norm.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/write_rows.h"

namespace lockstep::models {
namespace {

constexpr double kDeviation = 0.02;

const GptConfig& checked(const GptConfig& c) {
  constexpr std::string_view kGptSite = "gpt";
  constexpr std::int64_t kMost = 1 << 24;
  const auto in_range = [](std::int64_t n) { return n >= 1 && n <= kMost; };
  check(in_range(c.vocabulary) && in_range(c.context) && in_range(c.layers) && in_range(c.heads) && in_range(c.width),
        kGptSite, "vocabulary {}, context {}, {} layers, {} heads, width {}: expected 1 to {} of each", c.vocabulary,
        c.context, c.layers, c.heads, c.width, kMost);
  check(c.width % c.heads == 0, kGptSite, "{} heads do not divide the width {}", c.heads, c.width);
  check(c.key_heads >= 0 && (c.key_heads == 0 || c.heads % c.key_heads == 0), kGptSite,
        "{} heads of keys do not divide {} heads", c.key_heads, c.heads);
  check(c.hidden >= 0 && c.dropout >= 0 && c.dropout < 1, kGptSite,
        "{} features inside an MLP and dropout {}, expected at least 0, and a number in [0, 1)", c.hidden, c.dropout);
  check(c.positions != GptPositions::Rotary || c.width / c.heads % 2 == 0, kGptSite,
        "a head has {} elements, expected an even number for rotary positions", c.width / c.heads);
  return c;
}

std::int64_t key_heads(const GptConfig& c) { return c.key_heads > 0 ? c.key_heads : c.heads; }

std::int64_t hidden_of(const GptConfig& c) {
  constexpr std::int64_t kMultiple = 32;
  if (c.hidden > 0) return c.hidden;
  if (c.mlp == GptMlp::Gelu) return 4 * c.width;
  return (8 * c.width / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

nn::LinearConfig linear_config(const GptConfig& c, std::int64_t in, std::int64_t out, double deviation = kDeviation) {
  return {.in = in, .out = out, .bias = c.bias, .weight_init = nn::normal(0, deviation), .bias_init = nn::constant(0)};
}

// Of the layers whose results are added to the residual stream, 2 per block.
double residual_deviation(const GptConfig& c) { return kDeviation / std::sqrt(2 * static_cast<double>(c.layers)); }

}  // namespace

// Layer or RMS norm over the width.
class Gpt::Norm : public nn::Module {
 public:
  explicit Norm(const GptConfig& c)
      : centred_(c.norm == GptNorm::Layer),
        weight_(add("weight", {.shape = {c.width}, .initialize = nn::constant(1), .role = Role::Norm})),
        bias_(centred_ && c.bias ? &add("bias", {.shape = {c.width}, .initialize = nn::constant(0), .role = Role::Norm})
                                 : nullptr) {}
  Value operator()(Value x) const {
    Graph& g = x.graph();
    if (!centred_) return rms_norm(x, 1, g.parameter(weight_));
    return layer_norm(x, 1, g.parameter(weight_), bias_ != nullptr ? g.parameter(*bias_) : Value());
  }

 private:
  bool centred_;
  Parameter& weight_;
  Parameter* bias_;
};

class Gpt::Attention : public nn::Module {
 public:
  explicit Attention(const GptConfig& c)
      : c_(c),
        c_attn_(this, "c_attn", linear_config(c, c.width, (c.heads + 2 * key_heads(c)) * width())),
        c_proj_(this, "c_proj", linear_config(c, c.width, c.width, residual_deviation(c))) {}

  Value operator()(Value x) const {  // (N, T, E) -> (N, T, E)
    return joined(self_attention(turned(heads_of(x), {}), c_.heads, options()));
  }
  Value operator()(Value x, const GptPast& past, std::size_t layer) const {
    const auto& [earlier_k, earlier_v] = past.layers[layer];
    const Value qkv = turned(heads_of(x), past.offset);
    const std::int64_t keys = key_heads(c_);
    const Value q = slice(qkv, 2, 0, c_.heads);
    const Value k = observe("k", slice(qkv, 2, c_.heads, keys));
    const Value v = observe("v", slice(qkv, 2, c_.heads + keys, keys));
    AttentionOptions o = options();
    o.offset = past.offset;
    return joined(attention(q, write_rows(earlier_k, k, past.offset), write_rows(earlier_v, v, past.offset), o));
  }

 private:
  std::int64_t width() const { return c_.width / c_.heads; }
  AttentionOptions options() const {
    return {.causal = true,
            .alibi = c_.positions == GptPositions::Alibi,
            .dropout = c_.dropout,
            .call_site = path() + ".attention"};
  }
  // (N, T, E) -> (N, T, H + 2 G, D)
  Value heads_of(Value x) const {
    return reshape(c_attn_(x), {x.shape()[0], x.shape()[1], c_.heads + 2 * key_heads(c_), width()});
  }
  Value turned(Value qkv, Value offset) const {
    if (c_.positions != GptPositions::Rotary) return qkv;
    return rotary(qkv, {.heads = c_.heads + key_heads(c_), .offset = offset});
  }
  Value joined(Value heads) const {  // (N, T, H, D) -> (N, T, E)
    const Shape shape{heads.shape()[0], heads.shape()[1], c_.width};
    return dropout(c_proj_(reshape(heads, shape)), c_.dropout, path());
  }

  GptConfig c_;
  nn::Child<nn::Linear> c_attn_, c_proj_;
};

class Gpt::Mlp : public nn::Module {
 public:
  explicit Mlp(const GptConfig& c)
      : c_fc_(this, "c_fc", linear_config(c, c.width, hidden_of(c))),
        c_proj_(this, "c_proj", linear_config(c, hidden_of(c), c.width, residual_deviation(c))) {}
  Value operator()(Value x) const { return c_proj_(gelu_tanh(c_fc_(x))); }

 private:
  nn::Child<nn::Linear> c_fc_, c_proj_;
};

class Gpt::Block : public nn::Module {
 public:
  explicit Block(const GptConfig& c) : c_(c), ln_1_(this, "ln_1", c), attn_(this, "attn", c), ln_2_(this, "ln_2", c) {
    if (c.mlp == GptMlp::Gelu) {
      mlp_ = std::make_unique<nn::Child<Mlp>>(this, "mlp", c);
    } else {
      gated_ = std::make_unique<nn::Child<nn::SwiGLU>>(
          this, "mlp",
          nn::SwiGLUConfig{.in = c.width,
                           .hidden = hidden_of(c),
                           .bias = c.bias,
                           .weight_init = nn::normal(0, kDeviation),
                           .out_weight_init = nn::normal(0, residual_deviation(c)),
                           .bias_init = nn::constant(0)});
    }
  }
  Value operator()(Value x) const {
    const auto in_block = block(x);
    return fed(x + attn_(ln_1_(x)));
  }
  Value operator()(Value x, const GptPast& past, std::size_t layer) const {
    return fed(x + attn_(ln_1_(x), past, layer));
  }

 private:
  Value fed(Value x) const {
    const Value y = ln_2_(x);
    return x + dropout(mlp_ ? (*mlp_)(y) : (*gated_)(y), c_.dropout, path() + ".mlp");
  }

  GptConfig c_;
  nn::Child<Norm> ln_1_;
  nn::Child<Attention> attn_;
  nn::Child<Norm> ln_2_;
  std::unique_ptr<nn::Child<Mlp>> mlp_;
  std::unique_ptr<nn::Child<nn::SwiGLU>> gated_;
};

class Gpt::Transformer : public nn::Module {
 public:
  explicit Transformer(const GptConfig& c)
      : c_(c),
        wte_(this, "wte",
             nn::EmbeddingConfig{
                 .num_embeddings = c.vocabulary, .embedding_dim = c.width, .weight_init = nn::normal(0, kDeviation)}) {
    if (c.positions == GptPositions::Learned) {
      wpe_ = std::make_unique<nn::Child<nn::Embedding>>(
          this, "wpe",
          nn::EmbeddingConfig{
              .num_embeddings = c.context, .embedding_dim = c.width, .weight_init = nn::normal(0, kDeviation)});
    }
    list_ = std::make_unique<nn::Child<nn::Module>>(this, "h");
    for (std::int64_t i = 0; i < c.layers; ++i)
      blocks_.push_back(std::make_unique<nn::Child<Block>>(list_.get(), formatted("{}", i), c));
    ln_f_ = std::make_unique<nn::Child<Norm>>(this, "ln_f", c);
  }
  Parameter& table() const { return wte_.weight(); }

  Value operator()(Value tokens) const {  // (N, T) -> (N, T, E)
    const std::int64_t steps = tokens.shape()[1];
    Value x = wte_(tokens);
    if (wpe_) x = x + slice(x.graph().parameter(wpe_->weight()), 0, 0, steps);
    x = dropout(x, c_.dropout, path());
    for (const auto& block : blocks_) x = (*block)(x);
    return (*ln_f_)(x);
  }
  Value operator()(Value tokens, const GptPast& past) const {
    Value x = wte_(tokens);
    if (wpe_) x = x + (*wpe_)(past.positions);
    for (std::size_t i = 0; i < blocks_.size(); ++i) x = (*blocks_[i])(x, past, i);
    return (*ln_f_)(x);
  }

 private:
  GptConfig c_;
  nn::Child<nn::Embedding> wte_;
  std::unique_ptr<nn::Child<nn::Embedding>> wpe_;
  std::unique_ptr<nn::Child<nn::Module>> list_;
  std::vector<std::unique_ptr<nn::Child<Block>>> blocks_;
  std::unique_ptr<nn::Child<Norm>> ln_f_;
};

// The table of the logits.
class Gpt::Head : public nn::Module {
 public:
  Head(const GptConfig& c, Parameter* tied)
      : weight_(tied != nullptr
                    ? *tied
                    : add("weight", {.shape = {c.vocabulary, c.width}, .initialize = nn::normal(0, kDeviation)})) {
    if (tied != nullptr) tie("weight", *tied);
  }
  Parameter& weight() const { return weight_; }

 private:
  Parameter& weight_;
};

Gpt::Gpt(const GptConfig& c)
    : config_(checked(c)),
      transformer_(std::make_unique<nn::Child<Transformer>>(this, "transformer", config_)),
      head_(std::make_unique<nn::Child<Head>>(this, "lm_head", config_, c.tied ? &transformer_->table() : nullptr)) {}

Gpt::~Gpt() = default;

Value Gpt::table(Graph& graph) const { return graph.parameter(head_->weight()); }

namespace {

void require_tokens(const GptConfig& c, const Value& tokens) {
  const Type type = tokens.type();
  check(type.dtype == DType::I32 && type.shape.rank() == 2 && type.shape[1] >= 1 && type.shape[1] <= c.context, "gpt",
        "tokens are {}, expected i32 (samples, 1 to {})", type.str(), c.context);
}

}  // namespace

VocabularyLoss Gpt::loss(Value tokens, Value targets, double label_smoothing) const {
  require_tokens(config_, tokens);
  const Value x = (*transformer_)(tokens);
  return vocabulary_cross_entropy(x, table(x.graph()), {}, targets, {.label_smoothing = label_smoothing});
}

Value Gpt::logits(Value tokens) const {
  require_tokens(config_, tokens);
  const Value x = (*transformer_)(tokens);
  return linear(x, table(x.graph()));
}

Value Gpt::next_logits(Value tokens) const {
  require_tokens(config_, tokens);
  const Value x = select((*transformer_)(tokens), 1, -1);
  return linear(x, table(x.graph()));
}

Value Gpt::next_logits(Value tokens, const GptPast& past) const {
  require_tokens(config_, tokens);
  check(std::ssize(past.layers) == config_.layers, "gpt", "there are keys and values of {} layers, expected {}",
        past.layers.size(), config_.layers);
  const Value x = select((*transformer_)(tokens, past), 1, -1);
  return linear(x, table(x.graph()));
}

}  // namespace lockstep::models
