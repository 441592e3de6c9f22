#include "lockstep/nn/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep {
namespace {

using nn::summarize;
using nn::Summary;

class Small : public nn::Module {
 public:
  Value operator()(Value x) const { return fc_(flatten(relu(norm_(conv_(x))))); }
  nn::Linear& fc() { return fc_; }

 private:
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 3, .out = 4, .kernel = 3, .bias = false}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 4}};
  nn::Child<nn::Linear> fc_{this, "fc", {.in = 4 * 6 * 6, .out = 5}};
};

TEST(Summary, HasARowPerModuleInOrderOfExecution) {
  const Small model;
  const Summary s = summarize(model, [&](Value x) { return model(x); }, {{2, 3, 8, 8}, DType::F32});
  ASSERT_EQ(s.rows.size(), 4u);
  EXPECT_EQ(s.rows[0].path, "conv");
  EXPECT_EQ(s.rows[0].ops, "conv2d");
  EXPECT_EQ(s.rows[0].output, (Type{{2, 4, 6, 6}, DType::F32}));
  EXPECT_EQ(s.rows[0].parameters, 4 * 3 * 9);
  EXPECT_EQ(s.rows[0].flops, 2.0 * (2 * 4 * 36) * (3 * 9));
  EXPECT_EQ(s.rows[0].bytes, 2 * 4 * 36 * 4);
  EXPECT_EQ(s.rows[1].parameters, 8);  // scale and shift; the running statistics are buffers
  EXPECT_EQ(s.rows[2].path, "(model)");
  EXPECT_EQ(s.rows[2].ops, "relu, reshape");
  EXPECT_EQ(s.rows[2].output.shape, (Shape{2, 144}));
  EXPECT_EQ(s.rows[2].bytes, 2 * 144 * 4);  // flatten is a view
  EXPECT_EQ(s.rows[3].path, "fc");
  EXPECT_GE(s.rows[3].flops, 2.0 * 2 * 144 * 5);
}

TEST(Summary, TotalsAreThoseOfTheModel) {
  Small model;
  model.fc().set_trainable(false);
  const Summary s = summarize(model, [&](Value x) { return model(x); }, {{2, 3, 8, 8}, DType::F64});
  EXPECT_EQ(s.batch, 2);
  EXPECT_EQ(s.parameters, 108 + 8 + 725);
  EXPECT_EQ(s.trainable, 108 + 8);
  EXPECT_EQ(s.buffers, 4 + 4 + 1);
  EXPECT_EQ(s.state_bytes, (108 + 8 + 725 + 9) * 8);
  double flops = 0;
  std::int64_t bytes = 0, parameters = 0;
  for (const nn::SummaryRow& row : s.rows) {
    flops += row.flops;
    bytes += row.bytes;
    parameters += row.parameters;
  }
  EXPECT_EQ(s.flops, flops);
  EXPECT_EQ(s.flops_per_sample(), flops / 2);
  EXPECT_EQ(s.activation_bytes, bytes);
  EXPECT_EQ(parameters, s.parameters);
}

TEST(Summary, AModuleCalledTwiceHasItsParametersOnce) {
  const nn::Linear layer({.in = 8, .out = 8});
  const Summary s = summarize(layer, [&](Value x) { return relu(layer(relu(layer(x)))); }, {{4, 8}, DType::F32});
  std::int64_t parameters = 0;
  for (const nn::SummaryRow& row : s.rows) parameters += row.parameters;
  EXPECT_EQ(parameters, 72);
  EXPECT_EQ(s.parameters, 72);
}

TEST(Summary, TableHasALinePerRowAndTheTotals) {
  const Small model;
  const Summary s = summarize(model, [&](Value x) { return model(x); }, {{2, 3, 8, 8}, DType::F32});
  const std::string text = s.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 4 + 2);
  for (const char* part : {"conv2d", "(model)", "(2, 4, 6, 6)", "841", "batch 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(Summary, AnInputThatDoesNotFitIsAnErrorThatNamesThePlace) {
  const Small model;
  try {
    summarize(model, [&](Value x) { return model(x); }, {{2, 1, 8, 8}, DType::F32});
    FAIL() << "one channel was taken for three";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("conv: input has 1 channels"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace lockstep
