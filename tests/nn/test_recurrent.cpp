// LSTM and GRU modules: PyTorch's parameters, layers, dropout between them, states, and what they and Fourier
// transforms refuse.
#include "lockstep/nn/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/ops/fourier.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/spectral_product.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::nn {
namespace {

TEST(RecurrentModules, HaveParametersAsPyTorchDoes) {
  const LSTM lstm({.in = 5, .hidden = 4, .layers = 2, .bidirectional = true});
  std::vector<std::string> names;
  for (const NamedParameter& p : lstm.named_parameters()) names.push_back(p.name + " " + p.parameter->shape.str());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "weight_ih_l0 (16, 5)",
                       "weight_hh_l0 (16, 4)",
                       "bias_ih_l0 (16)",
                       "bias_hh_l0 (16)",
                       "weight_ih_l0_reverse (16, 5)",
                       "weight_hh_l0_reverse (16, 4)",
                       "bias_ih_l0_reverse (16)",
                       "bias_hh_l0_reverse (16)",
                       "weight_ih_l1 (16, 8)",
                       "weight_hh_l1 (16, 4)",
                       "bias_ih_l1 (16)",
                       "bias_hh_l1 (16)",
                       "weight_ih_l1_reverse (16, 8)",
                       "weight_hh_l1_reverse (16, 4)",
                       "bias_ih_l1_reverse (16)",
                       "bias_hh_l1_reverse (16)",
                   }));
  const GRU gru({.in = 5, .hidden = 4, .bias = false});
  ASSERT_EQ(gru.named_parameters().size(), 2u);
  EXPECT_EQ(gru.named_parameters()[0].parameter->shape, (Shape{12, 5}));
  EXPECT_EQ(gru.named_parameters()[1].parameter->shape, (Shape{12, 4}));
}

TEST(RecurrentModules, StartFromTheBoundOfTheirHiddenFeatures) {
  const GRU gru({.in = 50, .hidden = 16});
  for (const NamedParameter& p : gru.named_parameters()) {
    std::vector<double> values(static_cast<std::size_t>(p.parameter->shape.elements()));
    RandomStream random(1, 2);
    p.parameter->initialize(p.parameter->shape, values, random);
    double largest = 0;
    for (const double v : values) largest = std::max(largest, std::abs(v));
    EXPECT_LT(largest, 0.25) << p.name;  // 1 / sqrt(16)
    EXPECT_GT(largest, 0.2) << p.name;
  }
}

TEST(RecurrentModules, GiveTheStatesOfEveryLayer) {
  const LSTM lstm({.in = 3, .hidden = 4, .layers = 2, .bidirectional = true});
  Graph graph(Mode::Eval, DType::F32);
  const auto out = lstm(graph.input("x", {{6, 7, 3}, DType::F32}));
  EXPECT_EQ(out.y.shape(), (Shape{6, 7, 8}));
  ASSERT_EQ(out.states.size(), 2u);
  for (const LSTM::State& s : out.states) {
    EXPECT_EQ(s.h.shape(), (Shape{6, 8}));
    EXPECT_EQ(s.c.shape(), (Shape{6, 8}));
  }
  const LSTM::Output next = lstm(out.y.graph().input("x", {{6, 7, 3}, DType::F32}), out.states);
  EXPECT_EQ(next.y.shape(), out.y.shape());
}

std::int64_t count_of(const Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& n) { return n.op && n.op->name() == op; });
}

TEST(RecurrentModules, AreOneOpPerLayerWithDropoutBetweenLayersInTraining) {
  const GRU gru({.in = 3, .hidden = 4, .layers = 3, .dropout = 0.5});
  for (const Mode mode : {Mode::Train, Mode::Eval}) {
    Graph graph(mode, DType::F32);
    gru(graph.input("x", {{2, 9, 3}, DType::F32}));
    EXPECT_EQ(count_of(graph, "gru"), 3);
    EXPECT_EQ(count_of(graph, "linear"), 3);
    EXPECT_EQ(count_of(graph, "dropout"), mode == Mode::Train ? 2 : 0);
  }
}

TEST(RecurrentModules, HandTheStepsToTheNextLayerAsTheyLie) {
  const LSTM lstm({.in = 3, .hidden = 4, .layers = 3});
  Graph graph(Mode::Train, DType::F32);
  lstm(graph.input("x", {{2, 9, 3}, DType::F32}));
  EXPECT_EQ(count_of(graph, "permute"), 2);  // of x, and of the last layer's y
}

TEST(RecurrentModules, KeepTheirStatesInF32WhereProductsAreBf16) {
  const LSTM lstm({.in = 3, .hidden = 4});
  Graph graph(Mode::Train, DType::F32, 0, DType::BF16);
  const auto out = lstm(graph.input("x", {{2, 9, 3}, DType::F32}));
  EXPECT_EQ(out.y.dtype(), DType::F32);
  EXPECT_EQ(out.states[0].c.dtype(), DType::F32);
}

// A loss and the sum of a gradient.
double loss_of(DType dtype, bool bf16) {
  const LSTM lstm({.in = 6, .hidden = 8, .layers = 2, .bidirectional = true});
  plan::CompiledModel model(lstm.named_parameters(),
                            [&](const plan::Inputs& in) { return plan::Traced{.loss = mean(lstm(in["x"]).y)}; },
                            {.dtype = dtype, .seed = 4}, {.bf16 = bf16});
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {{4, 5, 6}, dtype}}});
  RandomStream random(3, 1);
  for (std::int64_t i = 0; i < 120; ++i) {
    const double value = random.uniform(-1, 1);
    if (dtype == DType::F64) {
      static_cast<double*>(plan.input("x"))[i] = value;
    } else {
      static_cast<float*>(plan.input("x"))[i] = static_cast<float>(value);
    }
  }
  plan.run();
  const Tensor slope = model.parameters().read_gradient("weight_hh_l0").to(DType::F64);
  double total = plan.loss();
  for (const double g : slope.data<double>()) total += g;
  return total;
}

TEST(RecurrentModules, AgreeInAllPrecisions) {
  const double wide = loss_of(DType::F64, false);
  EXPECT_NEAR(loss_of(DType::F32, false), wide, 1e-5);
  EXPECT_NEAR(loss_of(DType::F32, true), wide, 1e-2);
}

// Counts the memory of further steps only: kernels of products also take blocks, whose size does not depend on steps.
TEST(RecurrentModules, GatesProductsAndTheirGradientsShareMemory) {
  constexpr std::int64_t kManySteps = 1000, kBatch = 4, kUnits = 32;
  const LSTM lstm({.in = 3, .hidden = kUnits});
  plan::CompiledModel model(lstm.named_parameters(), [&](const plan::Inputs& in) {
    return plan::Traced{.loss = mean(lstm(in["x"]).states[0].h)};
  });
  const auto arena = [&](std::int64_t steps) {
    return static_cast<double>(model.plan(Mode::Train, {{"x", {{kBatch, steps, 3}, DType::F32}}}).arena_bytes());
  };
  const auto gates = static_cast<double>(kManySteps * kBatch * 4 * kUnits * 4);  // bytes
  // y, c and the states before each step are a quarter each; gradients in memory of their own would make it 2.75.
  EXPECT_LT(arena(2 * kManySteps) - arena(kManySteps), 2.25 * gates);
}

std::string error_of(const std::function<void(Graph&)>& trace) {
  Graph graph(Mode::Train, DType::F32);
  try {
    trace(graph);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Value input(Graph& graph, Shape shape) { return graph.input(shape.str(), {shape, DType::F32}); }

TEST(RecurrentModules, NameWhatDoesNotFit) {
  struct Model : Module {
    Child<LSTM> lstm{this, "lstm", {.in = 3, .hidden = 4}};
    Child<GRU> gru{this, "gru", {.in = 3, .hidden = 4, .layers = 2}};
  } const model;
  EXPECT_EQ(error_of([&](Graph& g) {
              model.lstm(input(g, {2, 9, 5}));
            }),
            "[lstm] lstm: input is f32(2, 9, 5), expected (samples, steps, 3)");
  EXPECT_EQ(error_of([&](Graph& g) {
              model.gru(input(g, {2, 9}));
            }),
            "[gru] gru: input is f32(2, 9), expected (samples, steps, 3)");
  EXPECT_EQ(error_of([&](Graph& g) {
              model.gru(input(g, {2, 9, 3}), std::vector<Value>{input(g, {2, 4})});
            }),
            "[gru] gru: initial states of 1 layers, expected 2 or none");
  EXPECT_EQ(error_of([&](Graph& g) {
              model.lstm(input(g, {2, 9, 3}), std::vector<LSTM::State>{{input(g, {2, 4}), input(g, {3, 4})}});
            }),
            "[lstm] lstm: the initial c is f32(3, 4), expected f32(2, 4)");
  EXPECT_EQ(error_of([&](Graph& g) {
              model.lstm(input(g, {2, 9, 3}), std::vector<LSTM::State>{{input(g, {2, 4}), {}}});
            }),
            "[lstm] lstm: one of the initial states h and c is missing, expected both or none");
  EXPECT_EQ(error_of([&](Graph&) { LSTM({.in = 3, .hidden = 0}); }),
            "[lstm] 3 input features, 0 hidden features and 1 layers, expected at least 1 of each");
  EXPECT_EQ(error_of([&](Graph&) { GRU({.in = 3, .hidden = 4, .dropout = 1}); }),
            "[gru] dropout is 1, expected a number in [0, 1)");
}

TEST(RecurrentModules, CanBeDifferentiatedOnce) {
  const LSTM lstm({.in = 3, .hidden = 4});
  EXPECT_EQ(
      error_of([&](Graph& g) {
        const Value x = input(g, {2, 9, 3});
        gradient(gradient(lstm(x).y, x), x);
      }),
      "[lstm_gradient] (model): this op has no gradient, and the loss or a gradient() depends on it: a recurrent layer "
      "can be differentiated once; do without it between the two Values of a gradient()");
}

TEST(FourierOps, NameWhatDoesNotFit) {
  EXPECT_EQ(error_of([](Graph& g) { rfft(input(g, {8}), 2); }), "[rfft] (model): input is f32(8), expected 2 axes");
  EXPECT_EQ(error_of([](Graph& g) { rfft(input(g, {8}), 4); }), "[rfft] (model): 4 axes, expected 1 to 3");
  EXPECT_EQ(error_of([](Graph& g) {
              fft(input(g, {8, 3}));
            }),
            "[fourier] (model): input is f32(8, 3), expected (..., 8, 2)");
  EXPECT_EQ(error_of([](Graph& g) {
              irfft(input(g, {3, 5, 2}), {9, 8});
            }),
            "[fourier] (model): input is f32(3, 5, 2), expected (..., 9, 5, 2)");
  EXPECT_EQ(error_of([](Graph& g) {
              rfft_low(input(g, {8, 9}), {5, 2});
            }),
            "[rfft_low] (model): 5 modes of each sign of an axis of length 8, expected 1 to 4");
  EXPECT_EQ(error_of([](Graph& g) {
              rfft_low(input(g, {8, 9}), {6});
            }),
            "[fourier] (model): 6 of the frequencies of an axis of length 9, expected 1 to 5");
  EXPECT_EQ(error_of([](Graph& g) {
              irfft_low(input(g, {6, 5, 2}), {5, 9});
            }),
            "[fourier] (model): 6 of the frequencies of an axis of length 5, expected 1 to 5");
  EXPECT_EQ(error_of([](Graph& g) {
              spectral_product(input(g, {4, 3, 5, 2}), input(g, {2, 3, 5, 2}));
            }),
            "[spectral_product] (model): operands are f32(4, 3, 5, 2) and f32(2, 3, 5, 2), expected 3 channels, not 2");
  EXPECT_EQ(error_of([](Graph& g) {
              spectral_product(input(g, {4, 3, 5, 2}), input(g, {3, 2, 6, 2}));
            }),
            "[spectral_product] (model): operands are f32(4, 3, 5, 2) and f32(3, 2, 6, 2), expected the same modes");
}

}  // namespace
}  // namespace lockstep::nn
