#include "tests/parity/attention_model.h"

#include "lockstep/nn/attention.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/vocabulary_cross_entropy.h"

namespace lockstep::parity {
namespace {

Value index_of(const nlohmann::json& r, Value x) {
  if (!r.contains("index_shape")) return {};
  return x.graph().input("index", {Shape(r.at("index_shape").get<std::vector<std::int64_t>>()), DType::I32});
}

Value vocabulary(const nlohmann::json& r, const Operand& operand) {
  const Value x = operand("x");
  const VocabularyCrossEntropyOptions options{.label_smoothing = r.value("label_smoothing", 0.0)};
  const VocabularyLoss loss = vocabulary_cross_entropy(x, operand("weight"), operand("bias"), index_of(r, x), options);
  return broadcast_to(reshape(loss.loss.mean, {1}), {x.shape()[0]});  // a number for each sample
}

}  // namespace

std::unique_ptr<nn::Module> make_attention(nn::Module* parent, const nlohmann::json& r) {
  if (r.at("op") != "multihead_attention") return nullptr;
  return std::make_unique<nn::Child<nn::MultiheadAttention>>(
      parent, "layer",
      nn::MultiheadAttentionConfig{.embed_dim = r.at("features"),
                                   .num_heads = r.at("heads"),
                                   .bias = r.value("bias", true),
                                   .causal = r.value("causal", false)});
}

Value apply_attention(const nlohmann::json& r, const nn::Module* layer, const Operand& operand) {
  const std::string op = r.at("op");
  const Value x = operand("x");
  if (const auto* attention = dynamic_cast<const nn::MultiheadAttention*>(layer)) {
    const nn::AttentionMasks masks{.lengths = index_of(r, x)};
    const Value memory = operand("memory");
    return memory ? (*attention)(x, memory, masks) : (*attention)(x, masks);
  }
  if (op == "vocabulary_cross_entropy") return vocabulary(r, operand);
  if (op == "attention") {
    return attention(x, operand("k"), operand("v"),
                     {.causal = r.value("causal", false),
                      .window = r.value("window", std::int64_t{0}),
                      .alibi = r.value("alibi", false),
                      .segments = index_of(r, x)});
  }
  return {};
}

}  // namespace lockstep::parity
