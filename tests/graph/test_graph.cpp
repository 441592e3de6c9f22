// Tracing: what a graph holds, and that shape errors name the place and the numbers.
#include "lockstep/graph/graph.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/row_norm.h"
#include "lockstep/ops/softmax.h"
#include "tests/graph/shape_errors.h"

namespace lockstep {
namespace {

const std::string kDiffer =
    "their types differ, expected one type; a loader's option floats converts the fields of a batch";

TEST_F(ShapeErrors, OfConvolutions) {
  const Value x = value({2, 32, 8, 8}), w = value({16, 64, 3, 3});
  expect("[conv2d] layer1.0.conv1: input has 32 channels, weight expects 64", [&] { conv2d(x, w); });
  expect("[conv2d] layer1.0.conv1: 16 filters do not divide into 3 groups", [&] { conv2d(x, w, {}, {.groups = 3}); });
  expect("[conv2d] layer1.0.conv1: input is (2, 32), expected (samples, channels, height, width)", [&] {
    conv2d(value({2, 32}), w);
  });
  expect("[conv2d] layer1.0.conv1: weight is (64), expected (out, in / groups, height, width)",
         [&] { conv2d(x, value({64})); });
  expect("[conv2d] layer1.0.conv1: padded input 2x4 is smaller than the filter's 3x3", [&] {
    conv2d(value({1, 64, 2, 2}), w, {}, {.padding_w = 1});
  });
  expect("[conv2d] layer1.0.conv1: stride and dilation must be positive, padding not negative: stride 0x1 padding 0x0",
         [&] {
           conv2d(value({1, 64, 8, 8}), w, {}, {.stride_h = 0});
         });
  expect("[conv2d] layer1.0.conv1: input is f32(1, 64, 8, 8), weight f64(16, 64, 3, 3): " + kDiffer, [&] {
    conv2d(value({1, 64, 8, 8}), value({16, 64, 3, 3}, DType::F64));
  });
  expect("[conv2d] layer1.0.conv1: bias is f32(15), expected f32(16)", [&] {
    conv2d(value({1, 64, 8, 8}), w, value({15}));
  });
}

TEST_F(ShapeErrors, OfProducts) {
  expect("[linear] layer1.0.conv1: input has 7 features, weight expects 5", [&] {
    linear(value({2, 7}), value({3, 5}));
  });
  expect(
      "[linear] layer1.0.conv1: input is (2, 7, 1, 1), weight expects 7 features in the last dimension; flatten images "
      "first",
      [&] {
        linear(value({2, 7, 1, 1}), value({3, 7}));
      });
  expect("[linear] layer1.0.conv1: weight is (7), expected (out, in)", [&] { linear(value({2, 7}), value({7})); });
  expect("[linear] layer1.0.conv1: bias is f32(2), expected f32(3)", [&] {
    linear(value({2, 7}), value({3, 7}), value({2}));
  });
  expect("[linear] layer1.0.conv1: input is f64(2, 7), weight f32(3, 7): " + kDiffer, [&] {
    linear(value({2, 7}, DType::F64), value({3, 7}));
  });
  expect("[matmul] layer1.0.conv1: operands are f32(2, 7) and f64(7, 5): " + kDiffer, [&] {
    matmul(value({2, 7}), value({7, 5}, DType::F64));
  });
  expect("[matmul] layer1.0.conv1: left operand (2, 7) has inner size 7, right operand (3, 5) expects 3", [&] {
    matmul(value({2, 7}), value({3, 5}));
  });
  expect("[matmul] layer1.0.conv1: left operand (2, 7) has inner size 2, right operand (3, 5) expects 5", [&] {
    matmul(value({2, 7}), value({3, 5}), true, true);
  });
  expect("[matmul] layer1.0.conv1: operands are (7) and (7, 5), expected matrices (..., rows, columns)", [&] {
    matmul(value({7}), value({7, 5}));
  });
  expect(
      "[matmul] layer1.0.conv1: operands are (3, 2, 7) and (2, 7, 5), expected leading dimensions that are equal, or 1 "
      "where they differ",
      [&] {
        matmul(value({3, 2, 7}), value({2, 7, 5}));
      });
}

TEST_F(ShapeErrors, OfNormalisations) {
  const Value x = value({2, 6, 4, 4}), six = value({6}), five = value({5});
  expect("[batch_norm2d] layer1.0.conv1: input has 6 channels, scale and shift expect 5",
         [&] { batch_norm2d(x, six, five, 1e-5); });
  expect("[batch_norm2d_inference] layer1.0.conv1: input has 6 channels, scale and shift expect 5",
         [&] { batch_norm2d_inference(x, six, six, six, five, 1e-5); });
  expect("[batch_norm2d] layer1.0.conv1: input is (6), expected (samples, channels, ...)",
         [&] { batch_norm2d(value({6}), six, six, 1e-5); });
  expect("[layer_norm] layer1.0.conv1: weight is f32(5), expected f32(4) for an input f32(2, 6, 4, 4)",
         [&] { layer_norm(x, 1, five); });
  expect("[layer_norm] layer1.0.conv1: bias is f32(6), expected f32(4, 4) for an input f32(2, 6, 4, 4)", [&] {
    layer_norm(x, 2, value({4, 4}), six);
  });
  expect("[layer_norm] layer1.0.conv1: input is (6), expected at least 2 dimensions", [&] { layer_norm(six, 2); });
  expect("[layer_norm] layer1.0.conv1: a bias is given without a weight, expected both or a weight alone",
         [&] { layer_norm(six, 1, {}, six); });
  expect("[rms_norm] layer1.0.conv1: input is i32(2, 6), expected a floating type", [&] {
    rms_norm(value({2, 6}, DType::I32), 1);
  });
  expect("[group_norm] layer1.0.conv1: 6 channels do not divide into 4 groups", [&] { group_norm(x, 4); });
  expect("[group_norm] layer1.0.conv1: weight is f32(5), expected f32(6) for an input f32(2, 6, 4, 4)",
         [&] { group_norm(x, 3, five); });
  expect(
      "[group_norm] layer1.0.conv1: input is (2, 6), one value for each group of channels, whose variance is 0, so "
      "that nothing would be learned; expected at least 2 values in training",
      [&] {
        group_norm(value({2, 6}), 6);
      });
  expect("[instance_norm] layer1.0.conv1: input is (2, 6), expected (samples, channels, ...) with positions", [&] {
    instance_norm(value({2, 6}));
  });
}

TEST_F(ShapeErrors, OfReductions) {
  const Value x = value({2, 6, 4});
  expect("[sum] layer1.0.conv1: axis is 3, expected -3 to 2 for an input f32(2, 6, 4)", [&] { sum(x, 3); });
  expect("[amax] layer1.0.conv1: axis is -4, expected -3 to 2 for an input f32(2, 6, 4)", [&] { amax(x, {0, -4}); });
  expect("[logsumexp] layer1.0.conv1: axis 1 is named twice, expected different axes of an input f32(2, 6, 4)", [&] {
    logsumexp(x, {1, 0, -2});
  });
  expect("[amin] layer1.0.conv1: input is i32(3), expected a floating type", [&] { amin(value({3}, DType::I32)); });
  expect("[softmax] layer1.0.conv1: axis is 3, expected -3 to 2 for an input f32(2, 6, 4)", [&] { softmax(x, 3); });
}

TEST_F(ShapeErrors, OfPerChannelValues) {
  const Value x = value({2, 6, 4, 4}), six = value({6});
  expect("[batch_norm2d] layer1.0.conv1: per-channel values are f32(6, 1), expected f32(6)", [&] {
    batch_norm2d(x, six, value({6, 1}), 1e-5);
  });
  expect("[batch_norm2d] layer1.0.conv1: per-channel values are f64(6), expected f32(6)",
         [&] { batch_norm2d(x, value({6}, DType::F64), six, 1e-5); });
}

// As PyTorch's "Expected more than 1 value per channel when training"; none is legal, and so is evaluation.
TEST_F(ShapeErrors, OfBatchNormsOfOneValue) {
  const Value six = value({6});
  for (const Shape& legal : {Shape{1, 6, 1, 2}, Shape{2, 6, 1, 1}, Shape{0, 6, 1, 1}})
    batch_norm2d(value(legal), six, six, 1e-5);
  expect(
      "[batch_norm2d] layer1.0.conv1: input is (1, 6, 1, 1), one value per channel, whose variance is 0, so that "
      "nothing "
      "would be learned; expected at least 2 values per channel in training: more samples for each rank, shard and "
      "micro-batch, or larger images",
      [&] {
        batch_norm2d(value({1, 6, 1, 1}), six, six, 1e-5);
      });
  batch_norm2d_inference(value({1, 6, 1, 1}), six, six, six, six, 1e-5);
}

TEST_F(ShapeErrors, OfPools) {
  const Value x = value({2, 6, 4, 4});
  expect("[max_pool2d] layer1.0.conv1: padding 2x0 must be at most half of the kernel 3x3",
         [&] { max_pool2d(x, {.kernel_h = 3, .kernel_w = 3, .padding_h = 2}); });
  expect("[average_pool2d] layer1.0.conv1: input 4x4 is smaller than the window 5x2",
         [&] { average_pool2d(x, {.kernel_h = 5}); });
  expect("[average_pool2d] layer1.0.conv1: dilation is 2x1, expected 1x1: only max pooling has one",
         [&] { average_pool2d(x, {.dilation_h = 2}); });
  expect("[average_pool2d] layer1.0.conv1: input is (2, 6), expected (samples, channels, height, width)", [&] {
    average_pool2d(value({2, 6}), {});
  });
}

TEST_F(ShapeErrors, OfElementwiseOps) {
  expect(
      "[add] layer1.0.conv1: operands are f32(2, 3) and f32(3, 2), expected equal shapes, or dimensions of 1 where "
      "they differ",
      [&] {
        value({2, 3}) + value({3, 2});
      });
  expect("[multiply] layer1.0.conv1: operands are f32(2) and f64(2): " + kDiffer,
         [&] { value({2}) * value({2}, DType::F64); });
  expect("[subtract] layer1.0.conv1: operands are f32(2, 3) and f64(2): " + kDiffer, [&] {
    value({2, 3}) - value({2}, DType::F64);
  });
  expect("[add] layer1.0.conv1: operands are f32(2) and i32(2): " + kDiffer,
         [&] { value({2}) + value({2}, DType::I32); });
  expect("[relu] layer1.0.conv1: input is i32(2), expected a floating type", [&] { relu(value({2}, DType::I32)); });
  expect("[reshape] layer1.0.conv1: input f32(2, 3) has 6 elements, shape (4) expects 4", [&] {
    reshape(value({2, 3}), {4});
  });
  expect(
      "[reshape] layer1.0.conv1: input f32(2, 3), shape (-2, -3): a size of -2 is not computed from the others; write "
      "it "
      "out",
      [&] {
        reshape(value({2, 3}), {-2, -3});
      });
  expect("[dropout] layer1.0.conv1: probability 1 is not in [0, 1)", [&] { dropout(value({2, 3}), 1, "site"); });
}

TEST_F(ShapeErrors, OfLosses) {
  const Value logits = value({4, 10});
  expect("[cross_entropy] layer1.0.conv1: targets are i32(3), expected i32(4), one class index per sample",
         [&] { cross_entropy(logits, value({3}, DType::I32)); });
  expect("[cross_entropy] layer1.0.conv1: 3 class weights for 10 classes", [&] {
    cross_entropy(logits, value({4}, DType::I32), {.class_weights = {1, 2, 3}});
  });
  expect("[cross_entropy] layer1.0.conv1: label smoothing 1.5 is not in [0, 1]",
         [&] { cross_entropy(logits, value({4}, DType::I32), {.label_smoothing = 1.5}); });
  expect("[count_correct] layer1.0.conv1: logits are f32(4), expected (samples, classes)",
         [&] { count_correct(value({4}), value({4}, DType::I32)); });
}

TEST(ShapeErrorsInModules, NameTheirPath) {
  struct Model : nn::Module {
    nn::Child<nn::Sequential> blocks{this, "layer1"};
    Model() {
      blocks.append<nn::Conv2d>(nn::Conv2dConfig{.in = 3, .out = 8})
          .append<nn::Conv2d>(nn::Conv2dConfig{.in = 16, .out = 8});
    }
  } model;
  Graph graph(Mode::Train, DType::F32);
  try {
    model.blocks(graph.input("x", {{1, 3, 4, 4}, DType::F32}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[conv2d] layer1.1: input has 8 channels, weight expects 16");
  }
}

TEST(Graph, SharesInputsByNameAndParametersByIdentity) {
  Graph graph(Mode::Train, DType::F64);
  const Type type{{3}, DType::F64};
  EXPECT_EQ(graph.input("x", type), graph.input("x", type));
  EXPECT_THROW(graph.input("x", {{4}, DType::F64}), Error);
  Parameter a{.shape = {3}}, b{.shape = {3}}, counter{.shape = {}, .is_integer = true};
  EXPECT_EQ(graph.parameter(a), graph.parameter(a));
  EXPECT_NE(graph.parameter(a), graph.parameter(b));
  EXPECT_EQ(graph.parameter(a).dtype(), DType::F64);
  EXPECT_EQ(graph.parameter(counter).dtype(), DType::I64);
  EXPECT_EQ(graph.nodes().size(), 4u);
}

TEST(Graph, NamesNodesByScope) {
  Graph graph(Mode::Train, DType::F32);
  const Value x = graph.input("x", {{3}, DType::F32});
  const Graph::Scope outer(graph, "outer");
  Value y;
  {
    const Graph::Scope inner(graph, "inner");
    y = relu(x);
  }
  const Value z = relu(y);
  EXPECT_EQ(graph.node(y).path, "inner");
  EXPECT_EQ(graph.node(z).path, "outer");
}

TEST(Graph, RefusesValuesFromElsewhere) {
  Graph one(Mode::Train, DType::F32), other(Mode::Train, DType::F32);
  const Value a = one.input("x", {{3}, DType::F32}), b = other.input("x", {{3}, DType::F32});
  EXPECT_THROW(a + b, Error);
  EXPECT_THROW(relu(Value()), Error);
  EXPECT_THROW(a + Value(), Error);
  EXPECT_THROW((void)Value().shape(), Error);
  one.observe("a", a);
  EXPECT_THROW(one.observe("a", a), Error);
}

TEST(Graph, DropoutTracesNothingAtEvaluation) {
  Graph evaluation(Mode::Eval, DType::F32);
  const Value x = evaluation.input("x", {{3, 2}, DType::F32});
  EXPECT_EQ(dropout(x, 0.5, "site"), x);
  Graph training(Mode::Train, DType::F32);
  const Value y = training.input("x", {{3, 2}, DType::F32});
  EXPECT_EQ(dropout(y, 0, "site"), y);
  EXPECT_NE(dropout(y, 0.5, "site"), y);
}

// A module that is called twice draws twice; what one site drew in the model before does not change.
TEST(Graph, GivesEachUseOfACallSiteAKeyOfItsOwn) {
  Graph graph(Mode::Train, DType::F32, 5);
  const std::uint64_t first = graph.random_key("site"), other = graph.random_key("other"),
                      second = graph.random_key("site"), third = graph.random_key("site");
  EXPECT_EQ((std::set{first, second, third, other}).size(), 4U);
  EXPECT_EQ(first, mix(5, hash_name("site")));
  Graph again(Mode::Train, DType::F32, 5);
  EXPECT_EQ(again.random_key("site"), first);
  EXPECT_EQ(again.random_key("site"), second);
}

TEST(Graph, ScalarsAreLoud) { EXPECT_THROW(Value().shape(), Error); }

}  // namespace
}  // namespace lockstep
