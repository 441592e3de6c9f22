// GPT, text from it, ViT and the encoder of series: names, the same values in different ways, recomputation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/plan/compiled_model.h"
#include "models/zoo/encoder_block.h"
#include "models/zoo/gpt_sampler.h"
#include "models/zoo/series_encoder.h"
#include "models/zoo/vit.h"

namespace lockstep {
namespace {

using models::Gpt;
using models::GptConfig;

GptConfig small() { return {.vocabulary = 11, .context = 8, .layers = 2, .heads = 4, .width = 16}; }

std::vector<GptConfig> variants() {
  std::vector<GptConfig> all(5, small());
  all[1].positions = models::GptPositions::Rotary;
  all[1].key_heads = 2;
  all[1].norm = models::GptNorm::Rms;
  all[1].mlp = models::GptMlp::SwiGlu;
  all[1].bias = false;
  all[2].positions = models::GptPositions::Alibi;
  all[2].tied = false;
  all[3].bias = false;
  all[3].key_heads = 1;
  all[4].dropout = 0.2;
  return all;
}

std::string text_of(const nn::Module& model, std::size_t first) {
  std::string text;
  for (const NamedParameter& p : model.named_parameters()) {
    if (first-- == 0) break;
    text += p.name + " " + p.parameter->shape.str() + "\n";
  }
  return text;
}

TEST(Gpt, HasNanoGptsNames) {
  EXPECT_EQ(
      text_of(Gpt(small()), 100), "transformer.wte.weight (11, 16)\ntransformer.wpe.weight (8, 16)\n" + [] {
        std::string blocks;
        for (const char* h : {"transformer.h.0.", "transformer.h.1."}) {
          for (const char* p :
               {"ln_1.weight (16)", "ln_1.bias (16)", "attn.c_attn.weight (48, 16)", "attn.c_attn.bias (48)",
                "attn.c_proj.weight (16, 16)", "attn.c_proj.bias (16)", "ln_2.weight (16)", "ln_2.bias (16)",
                "mlp.c_fc.weight (64, 16)", "mlp.c_fc.bias (64)", "mlp.c_proj.weight (16, 64)", "mlp.c_proj.bias (16)"})
            blocks += std::string(h) + p + "\n";
        }
        return blocks;
      }() + "transformer.ln_f.weight (16)\ntransformer.ln_f.bias (16)\nlm_head.weight (11, 16)\n");
  const Gpt tied(small());
  EXPECT_EQ(tied.named_parameters().front().parameter, tied.named_parameters().back().parameter);
  EXPECT_EQ(text_of(Gpt(variants()[1]), 6),
            "transformer.wte.weight (11, 16)\ntransformer.h.0.ln_1.weight (16)\n"
            "transformer.h.0.attn.c_attn.weight (32, 16)\ntransformer.h.0.attn.c_proj.weight (16, 16)\n"
            "transformer.h.0.ln_2.weight (16)\ntransformer.h.0.mlp.gate_proj.weight (64, 16)\n");
}

// The root of the mean square of the first values of a parameter.
double initial_deviation(const nn::Module& model, const std::string& name) {
  const std::vector<NamedParameter> all = model.named_parameters();
  const auto found = std::ranges::find(all, name, &NamedParameter::name);
  if (found == all.end()) throw Error("no parameter " + name);
  std::vector<double> values(static_cast<std::size_t>(found->parameter->shape.elements()));
  RandomStream random(1, 2);
  found->parameter->initialize(found->parameter->shape, values, random);
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(Gpt, HasInitialValuesOfGpt2WithBothKindsOfMlp) {
  GptConfig config = small();
  config.width = 64;
  const std::string mlp = "transformer.h.1.mlp.";
  const double inner = 0.02, residual = 0.02 / std::sqrt(2.0 * 2);  // 2 layers
  const Gpt gelu(config);
  config.mlp = models::GptMlp::SwiGlu;
  const Gpt gated(config);
  EXPECT_NEAR(initial_deviation(gelu, mlp + "c_fc.weight"), inner, 0.03 * inner);
  EXPECT_NEAR(initial_deviation(gelu, mlp + "c_proj.weight"), residual, 0.03 * residual);
  EXPECT_NEAR(initial_deviation(gated, mlp + "gate_proj.weight"), inner, 0.03 * inner);
  EXPECT_NEAR(initial_deviation(gated, mlp + "up_proj.weight"), inner, 0.03 * inner);
  EXPECT_NEAR(initial_deviation(gated, mlp + "down_proj.weight"), residual, 0.03 * residual);
  for (const char* layer : {"gate_proj", "up_proj", "down_proj"})
    EXPECT_EQ(initial_deviation(gated, mlp + layer + ".bias"), 0);
}

TEST(Gpt, RefusesWhatCannotBe) {
  const auto refused = [](auto change) {
    GptConfig config = small();
    change(config);
    EXPECT_THROW(Gpt{config}, Error);
  };
  refused([](GptConfig& c) { c.heads = 3; });
  refused([](GptConfig& c) { c.key_heads = 3; });
  refused([](GptConfig& c) { c.layers = 0; });
  refused([](GptConfig& c) { c.dropout = 1; });
  refused([](GptConfig& c) {
    c.heads = 16;
    c.positions = models::GptPositions::Rotary;
  });
  const Gpt gpt(small());
  Graph graph(Mode::Eval, DType::F32);
  EXPECT_THROW(gpt.logits(graph.input("long", {{1, 9}, DType::I32})), Error);
}

void fill(plan::Plan& plan, std::int64_t vocabulary) {
  RandomStream random(3, 0);
  for (const char* name : {"tokens", "targets"}) {
    auto* values = static_cast<std::int32_t*>(plan.input(name));
    for (std::int64_t i = 0; i < plan.input_type(name)->shape.elements(); ++i)
      values[i] = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary)));
  }
  if (void* step = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 7;
  if (auto* ids = static_cast<std::int64_t*>(plan.input(Graph::kSampleIds))) {
    for (std::int64_t i = 0; i < plan.batch(); ++i) ids[i] = i;
  }
}

const std::map<std::string, Type>& batch_of_three() {
  static const std::map<std::string, Type> types{{"tokens", {{3, 8}, DType::I32}}, {"targets", {{3, 8}, DType::I32}}};
  return types;
}

TEST(Gpt, TheLossIsThatOfTheLogits) {
  for (const GptConfig& config : variants()) {
    const Gpt gpt(config);
    const auto by_vocabulary = [&](const plan::Inputs& in) {
      return plan::Traced{.loss = gpt.loss(in["tokens"], in["targets"]).loss};
    };
    const auto by_logits = [&](const plan::Inputs& in) {
      const Value logits = reshape(gpt.logits(in["tokens"]), {24, config.vocabulary});
      return plan::Traced{.loss = Loss(cross_entropy(logits, reshape(in["targets"], {24})).mean)};
    };
    double losses[2];
    for (int i = 0; i < 2; ++i) {
      plan::CompiledModel model(gpt.named_parameters(), i == 0 ? plan::ModelFunction(by_vocabulary) : by_logits,
                                {.dtype = DType::F64, .seed = 5});
      plan::Plan& plan = model.plan(Mode::Eval, batch_of_three());
      fill(plan, config.vocabulary);
      plan.run();
      losses[i] = plan.loss();
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-10);
    EXPECT_NEAR(losses[0], std::log(11.0), 0.2);  // small initial weights know nothing
  }
}

TEST(Gpt, RecomputationByBlocksKeepsTheBitsAndSavesMemory) {
  GptConfig config = small();
  config.layers = 12;
  config.dropout = 0.1;
  const Gpt gpt(config);
  const auto function = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = gpt.loss(in["tokens"], in["targets"]).loss};
  };
  std::size_t bytes[2];
  std::vector<float> gradients[2];
  for (int i = 0; i < 2; ++i) {
    plan::CompiledModel model(gpt.named_parameters(), function, {.seed = 5},
                              {.recompute = i == 0 ? plan::Recompute::None : plan::Recompute::Blocks});
    plan::Plan& plan = model.plan(Mode::Train, batch_of_three());
    fill(plan, config.vocabulary);
    plan.run();
    bytes[i] = model.arena().bytes();
    for (const NamedParameter& p : gpt.named_parameters()) {
      if (p.name == "lm_head.weight") continue;
      const auto* values = static_cast<const float*>(model.parameters().gradient(p.parameter, 0));
      gradients[i].insert(gradients[i].end(), values, values + p.parameter->shape.elements());
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_LT(bytes[1], bytes[0] * 3 / 4);
}

TEST(Gpt, TrainsInBf16) {
  for (const GptConfig& config : variants()) {
    const Gpt gpt(config);
    plan::CompiledModel model(
        gpt.named_parameters(),
        [&](const plan::Inputs& in) { return plan::Traced{.loss = gpt.loss(in["tokens"], in["targets"]).loss}; }, {},
        {.bf16 = true});
    plan::Plan& plan = model.plan(Mode::Train, batch_of_three());
    fill(plan, config.vocabulary);
    plan.run();
    EXPECT_TRUE(std::isfinite(plan.loss()));
  }
}

TEST(GptSampler, TheCacheGivesTheLogitsOfAWholePass) {
  for (const GptConfig& config : variants()) {
    const Gpt gpt(config);
    models::GptSampler sampler(gpt);
    infer::Predictor whole(gpt, [&](const plan::Inputs& in) { return gpt.logits(in["tokens"]); }, {.input = "tokens"});
    std::vector<std::int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6};
    Tensor input({1, 8}, DType::I32);
    std::ranges::copy(tokens, input.data<std::int32_t>().begin());
    const Tensor all = whole(input);
    for (std::size_t known = 3; known <= tokens.size(); ++known) {
      const std::span<const float> logits =
          known == 3 ? sampler.start(std::span(tokens).first(3)) : sampler.next(tokens[known - 1]);
      ASSERT_EQ(logits.size(), 11u);
      for (std::size_t i = 0; i < 11; ++i)
        EXPECT_NEAR(logits[i], all.data<float>()[(known - 1) * 11 + i], 1e-5) << "behind " << known << " tokens";
    }
    // The context is full: the last half of it and the new token are read again.
    const std::span<const float> next = sampler.next(7);
    std::vector<float> further(next.begin(), next.end());
    models::GptSampler fresh(gpt);
    const std::vector<std::int32_t> half{5, 9, 2, 6, 7};
    const std::span<const float> again = fresh.start(half);
    EXPECT_EQ(further, std::vector<float>(again.begin(), again.end()));
    EXPECT_EQ(sampler.next(1).size(), 11u);
  }
}

TEST(GptSampler, ALongStartIsCutAndNoStartIsAnError) {
  const Gpt gpt(small());
  models::GptSampler sampler(gpt), other(gpt);
  EXPECT_THROW(sampler.next(1), Error);
  EXPECT_THROW(sampler.start({}), Error);
  const std::vector<std::int32_t> tokens{10, 10, 10, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::span<const float> cut = sampler.start(tokens), last = other.start(std::span(tokens).last(8));
  EXPECT_TRUE(std::ranges::equal(cut, last));
}

TEST(SampleToken, ChoosesByProbability) {
  const std::vector<float> logits{std::log(0.2f), std::log(0.5f), std::log(0.1f), std::log(0.2f)};
  const auto chosen = [&](const models::SamplingOptions& o, double uniform) {
    return models::sample_token(logits, o, uniform);
  };
  // In the order of probabilities: 1 (0.5), 0 (0.2), 3 (0.2), 2 (0.1).
  EXPECT_EQ(chosen({}, 0), 1);
  EXPECT_EQ(chosen({}, 0.49), 1);
  EXPECT_EQ(chosen({}, 0.51), 0);
  EXPECT_EQ(chosen({}, 0.71), 3);
  EXPECT_EQ(chosen({}, 0.91), 2);
  EXPECT_EQ(chosen({}, 0.9999999), 2);
  EXPECT_EQ(chosen({.temperature = 0}, 0.99), 1);
  EXPECT_EQ(chosen({.top_k = 2}, 0.99), 0);
  EXPECT_EQ(chosen({.top_k = 2}, 0.70), 1);  // 0.5 of 0.7
  EXPECT_EQ(chosen({.top_p = 0.6}, 0.99), 0);
  EXPECT_EQ(chosen({.top_p = 0.4}, 0.99), 1);
  EXPECT_EQ(chosen({.temperature = 0.1}, 0.999), 1);
  EXPECT_EQ(chosen({.temperature = 1e6}, 0.26), 0);
  EXPECT_THROW(chosen({.temperature = -1}, 0), Error);
  EXPECT_THROW(chosen({.top_p = 0}, 0), Error);
  EXPECT_THROW(models::sample_token(std::vector<float>{0, NAN}, {}, 0), Error);
}

TEST(Vit, HasTorchvisionsNames) {
  const models::Vit vit({.image = {3, 8, 12}, .classes = 5, .patch = 4, .width = 8, .layers = 1, .heads = 2});
  EXPECT_EQ(
      text_of(vit, 100),
      "class_token (1, 1, 8)\nconv_proj.weight (8, 3, 4, 4)\nconv_proj.bias (8)\nencoder.pos_embedding (1, 7, 8)\n"
      "encoder.layers.encoder_layer_0.ln_1.weight (8)\nencoder.layers.encoder_layer_0.ln_1.bias (8)\n"
      "encoder.layers.encoder_layer_0.self_attention.in_proj_weight (24, 8)\n"
      "encoder.layers.encoder_layer_0.self_attention.in_proj_bias (24)\n"
      "encoder.layers.encoder_layer_0.self_attention.out_proj.weight (8, 8)\n"
      "encoder.layers.encoder_layer_0.self_attention.out_proj.bias (8)\n"
      "encoder.layers.encoder_layer_0.ln_2.weight (8)\nencoder.layers.encoder_layer_0.ln_2.bias (8)\n"
      "encoder.layers.encoder_layer_0.mlp.0.weight (32, 8)\nencoder.layers.encoder_layer_0.mlp.0.bias (32)\n"
      "encoder.layers.encoder_layer_0.mlp.3.weight (8, 32)\nencoder.layers.encoder_layer_0.mlp.3.bias (8)\n"
      "encoder.ln.weight (8)\nencoder.ln.bias (8)\nheads.head.weight (5, 8)\nheads.head.bias (5)\n");
  EXPECT_THROW(models::Vit({.image = {3, 30, 32}, .patch = 4}), Error);
  EXPECT_THROW(models::vit_config("xl"), Error);
}

TEST(Vit, LeavesPartsOutInTrainingOnly) {
  const models::Vit vit(
      {.image = {1, 8, 8}, .classes = 2, .patch = 4, .width = 8, .layers = 3, .heads = 2, .stochastic_depth = 0.2});
  for (const Mode mode : {Mode::Train, Mode::Eval}) {
    Graph graph(mode, DType::F32);
    vit(graph.input("image", {{2, 1, 8, 8}, DType::F32}));
    int parts = 0;
    for (const Node& node : graph.nodes()) parts += node.op && node.op->name() == "dropout";
    EXPECT_EQ(parts, mode == Mode::Train ? 4 : 0);  // two of each block but the first one
  }
}

}  // namespace
}  // namespace lockstep
