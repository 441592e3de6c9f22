// Multi-head attention and SwiGLU: PyTorch's parameters, generation with a cache, bf16, and what they refuse.
#include "lockstep/nn/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/vocabulary_cross_entropy.h"
#include "lockstep/ops/write_rows.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::nn {
namespace {

using Names = std::vector<std::string>;

Names parameters_of(const Module& module) {
  Names names;
  for (const NamedParameter& p : module.named_parameters()) names.push_back(p.name + " " + p.parameter->shape.str());
  return names;
}

TEST(AttentionModules, HaveParametersAsPyTorchDoes) {
  EXPECT_EQ(parameters_of(MultiheadAttention({.embed_dim = 12, .num_heads = 4})),
            (Names{"in_proj_weight (36, 12)", "in_proj_bias (36)", "out_proj.weight (12, 12)", "out_proj.bias (12)"}));
  EXPECT_EQ(parameters_of(MultiheadAttention({.embed_dim = 12, .num_heads = 4, .key_heads = 2, .bias = false})),
            (Names{"in_proj_weight (24, 12)", "out_proj.weight (12, 12)"}));
  EXPECT_EQ(parameters_of(SwiGLU({.in = 8, .hidden = 20})),
            (Names{"gate_proj.weight (20, 8)", "up_proj.weight (20, 8)", "down_proj.weight (8, 20)"}));
}

constexpr std::int64_t kSamples = 2, kSteps = 7, kFeatures = 16;

// Fills an input of f32 or i32 with the same numbers in each run.
void fill(plan::Plan& plan, const std::string& name, std::int64_t elements) {
  RandomStream random(3, 1);
  auto* const to = static_cast<float*>(plan.input(name));
  for (std::int64_t i = 0; i < elements; ++i) to[i] = static_cast<float>(random.uniform(-1, 1));
}

// The layer's result for all steps at once.
std::vector<float> whole(const MultiheadAttention& layer) {
  plan::CompiledModel model(layer.named_parameters(),
                            [&](const plan::Inputs& in) { return plan::Traced{.prediction = layer(in["x"])}; },
                            {.seed = 4});
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", {{kSamples, kSteps, kFeatures}, DType::F32}}});
  fill(plan, "x", kSamples * kSteps * kFeatures);
  plan.run();
  const Tensor y = plan.prediction();
  return {y.data<float>().begin(), y.data<float>().end()};
}

// The same in three calls of 4, 2 and 1 steps, each behind what the cache, with room for 9 positions, holds.
std::vector<float> in_parts(const MultiheadAttention& layer, std::int64_t heads) {
  plan::CompiledModel model(
      layer.named_parameters(),
      [&](const plan::Inputs& in) {
        const Value x = in["x"];
        Graph& g = x.graph();
        const Type cache{{kSamples, 9, heads, kFeatures / 4}, DType::F32};
        AttentionCache state{g.input("k", cache), g.input("v", cache), g.input("offset", {{kSamples}, DType::I32})};
        std::vector<Value> y;
        std::int64_t at = 0;
        for (const std::int64_t steps : {4, 2, 1}) {
          y.push_back(layer(slice(x, 1, at, steps), state));
          at += steps;
          state.offset = g.input(formatted("offset{}", at), {{kSamples}, DType::I32});
        }
        return plan::Traced{.prediction = concat(y, 1)};
      },
      {.seed = 4});
  const Type ints{{kSamples}, DType::I32}, cache{{kSamples, 9, heads, kFeatures / 4}, DType::F32};
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", {{kSamples, kSteps, kFeatures}, DType::F32}},
                                             {"k", cache},
                                             {"v", cache},
                                             {"offset", ints},
                                             {"offset4", ints},
                                             {"offset6", ints},
                                             {"offset7", ints}});
  fill(plan, "x", kSamples * kSteps * kFeatures);
  for (const char* name : {"k", "v"})  // what lies behind the positions that are written is not read
    std::fill_n(static_cast<float*>(plan.input(name)), cache.shape.elements(), 100.0F);
  for (const std::int32_t at : {0, 4, 6, 7}) {
    if (void* offset = plan.input(at == 0 ? "offset" : formatted("offset{}", at)))
      std::fill_n(static_cast<std::int32_t*>(offset), kSamples, at);
  }
  plan.run();
  const Tensor y = plan.prediction();
  return {y.data<float>().begin(), y.data<float>().end()};
}

TEST(AttentionModules, GenerateWithACacheWhatTheyComputeAtOnce) {
  const MultiheadAttentionConfig plain{.embed_dim = kFeatures, .num_heads = 4, .causal = true};
  MultiheadAttentionConfig rotary = plain, alibi = plain;
  rotary.key_heads = 2;
  rotary.rotary = RotaryOptions{.width = 2};
  rotary.window = 3;
  alibi.alibi = true;
  alibi.key_heads = 1;
  for (const MultiheadAttentionConfig& config : {plain, rotary, alibi}) {
    const MultiheadAttention layer(config);
    const auto want = whole(layer), got = in_parts(layer, config.key_heads == 0 ? 4 : config.key_heads);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6) << "element " << i;
  }
}

// A small model that has all of it: layer, gated layer and tied weights; returns the loss and the sum of a gradient.
double attention_loss(DType dtype, bool bf16) {
  struct Model : Module {
    Child<Embedding> words{this, "words", {.num_embeddings = 11, .embedding_dim = kFeatures}};
    Child<MultiheadAttention> attention{
        this, "attention", {.embed_dim = kFeatures, .num_heads = 4, .causal = true, .rotary = RotaryOptions{}}};
    Child<SwiGLU> gated{this, "gated", {.in = kFeatures, .hidden = 24}};
    VocabularyLoss operator()(Value ids) {
      Value x = words(ids);
      x = x + attention(x);
      x = x + gated(x);
      return vocabulary_cross_entropy(x, x.graph().parameter(words.weight()), {}, ids);
    }
  } network;
  plan::CompiledModel model(network.named_parameters(),
                            [&](const plan::Inputs& in) {
                              const VocabularyLoss loss = network(in["ids"]);
                              in.graph().observe("correct", loss.correct);
                              in.graph().observe("each", loss.each);
                              return plan::Traced{.loss = loss.loss};
                            },
                            {.dtype = dtype, .seed = 4}, {.bf16 = bf16});
  plan::Plan& plan = model.plan(Mode::Train, {{"ids", {{kSamples, kSteps}, DType::I32}}});
  auto* const ids = static_cast<std::int32_t*>(plan.input("ids"));
  for (std::int32_t i = 0; i < kSamples * kSteps; ++i) ids[i] = i * 5 % 11;
  plan.run();
  double total = plan.loss();
  const Tensor each = plan.observed("each").to(DType::F64);
  EXPECT_EQ(each.shape(), (Shape{kSamples, kSteps}));
  double mean = 0;
  for (const double loss : each.data<double>()) mean += loss / static_cast<double>(kSamples * kSteps);
  EXPECT_NEAR(mean, total, 1e-5);
  EXPECT_GT(plan.observed("correct").data<double>()[0], 0);  // each word is near to itself
  const Tensor slope = model.parameters().read_gradient("words.weight").to(DType::F64);
  for (const double g : slope.data<double>()) total += std::abs(g);
  return total;
}

TEST(AttentionModules, AgreeInAllPrecisions) {
  const double wide = attention_loss(DType::F64, false);
  EXPECT_NEAR(attention_loss(DType::F32, false), wide, 1e-5 * wide);
  EXPECT_NEAR(attention_loss(DType::F32, true), wide, 2e-2 * wide);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Value new_input(Graph& graph, Shape shape, DType dtype = DType::F32) {
  return graph.input(Type{shape, dtype}.str(), {shape, dtype});
}

TEST(AttentionModules, NameWhatDoesNotFit) {
  Graph g(Mode::Train, DType::F32);
  const Value q = new_input(g, {2, 5, 4, 3});
  EXPECT_EQ(error_of([&] {
              attention(q, new_input(g, {2, 5, 3, 3}), new_input(g, {2, 5, 3, 3}));
            }),
            "[attention] (model): 4 heads of queries and 3 of keys, expected a multiple");
  EXPECT_EQ(
      error_of([&] {
        attention(q, new_input(g, {2, 4, 4, 3}), new_input(g, {2, 4, 4, 3}), {.causal = true});
      }),
      "[attention] (model): 5 queries and 4 keys, expected no fewer keys than queries, as positions count (causal, "
      "window, ALiBi, segments or offset)");
  EXPECT_EQ(error_of([&] { attention(q, q, q, {.dropout = 1}); }),
            "[attention] (model): dropout is 1, expected a number in [0, 1)");
  EXPECT_EQ(error_of([&] { attention(q, q, q, {.lengths = new_input(g, {3}, DType::I32)}); }),
            "[attention] (model): lengths are i32(3), expected i32(2)");
  EXPECT_EQ(error_of([&] { self_attention(q, 3); }),
            "[attention] (model): the input f32(2, 5, 4, 3) has 4 heads in all, 3 of them of queries; expected as many "
            "heads of keys as of values, whose number divides that of the queries");
  EXPECT_EQ(error_of([&] { rotary(q); }),
            "[rotary] (model): 3 elements of a head are turned, expected an even number from 2 to 3");
  EXPECT_EQ(error_of([&] {
              write_rows(q, new_input(g, {2, 6, 4, 3}), new_input(g, {2}, DType::I32));
            }),
            "[write_rows] (model): the value is f32(2, 5, 4, 3) and the rows f32(2, 6, 4, 3), expected at most 5 "
            "positions and else the same shape");
  EXPECT_EQ(error_of([&] { MultiheadAttention({.embed_dim = 10, .num_heads = 4}); }),
            "[attention] 10 features and 4 heads, expected heads that divide the features");
  EXPECT_EQ(error_of([&] {
              MultiheadAttention({.embed_dim = 8, .num_heads = 4})(new_input(g, {2, 5, 9}));
            }),
            "[attention] (model): input is f32(2, 5, 9), expected (samples, steps, 8)");
  EXPECT_EQ(error_of([&] { gradient(gradient(attention(q, q, q), q), q); }),
            "[attention_gradient] (model): this op has no gradient, and the loss or a gradient() depends on it: "
            "attention can be differentiated once; softmax and matmul compose the same any number of times");
}

// The error of a run of attention with these lengths and offsets among 6 keys.
std::string error_of_run(std::int32_t length, std::int32_t offset) {
  plan::CompiledModel model({}, [](const plan::Inputs& in) {
    const Value q = in["q"], k = in["k"];
    return plan::Traced{.prediction = attention(q, k, k, {.lengths = in["length"], .offset = in["offset"]})};
  });
  const Type ints{{2}, DType::I32};
  plan::Plan& plan = model.plan(
      Mode::Eval,
      {{"q", {{2, 3, 1, 4}, DType::F32}}, {"k", {{2, 6, 1, 4}, DType::F32}}, {"length", ints}, {"offset", ints}});
  fill(plan, "q", 24);
  fill(plan, "k", 48);
  for (int n = 0; n < 2; ++n) {
    static_cast<std::int32_t*>(plan.input("length"))[n] = n == 0 ? 6 : length;
    static_cast<std::int32_t*>(plan.input("offset"))[n] = n == 0 ? 3 : offset;
  }
  return error_of([&] { plan.run(); });
}

TEST(AttentionModules, NameTheSampleOfALengthOrOffsetOutOfRange) {
  EXPECT_EQ(error_of_run(0, 0), "no error");
  EXPECT_EQ(error_of_run(7, 0),
            "[attention] (model): 'length' of row 1 of the batch is 7, expected 0 to 6: there are 6 keys");
  EXPECT_EQ(error_of_run(6, 4),
            "[attention] (model): 'offset' of row 1 of the batch is 4, expected 0 to 3: 3 queries stand among 6 keys");
}

}  // namespace
}  // namespace lockstep::nn
