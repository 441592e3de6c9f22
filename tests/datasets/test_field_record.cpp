// The record of a run's fields in its checkpoints, and what follows from it for other files and for predictions.
#include "data/datasets/field_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "lockstep/core/error.h"
#include "tests/messages.h"

namespace lockstep::datasets {
namespace {

using data::Field;

// density and velocity to pressure and heat, on 4 x 5 points; heat has two channels and was measured by its logarithm.
FieldRecord flow() {
  return {.inputs = {{.name = "density", .shape = Shape{4, 5}}, {.name = "velocity", .shape = Shape{2, 4, 5}}},
          .targets = {{.name = "pressure", .shape = Shape{4, 5}}, {.name = "heat", .shape = Shape{2, 4, 5}}},
          .axes = {.inputs = 2, .targets = 2},
          .normalisation = data::Normalisation(
              {{.field = "density", .shift = {1.5}, .scale = {0.1}},
               {.field = "velocity", .channel_axis = 0, .shift = {1, 2}, .scale = {3, 4}},
               {.field = "pressure", .shift = {-2}, .scale = {0.5}},
               {.field = "heat", .log_offset = 1.0, .channel_axis = 0, .shift = {0.25, 0.5}, .scale = {1, 2}}}),
          .input = Shape{3, 4, 5},
          .predicted = {{"target", Shape{3, 4, 5}, DType::F32}},
          .classes = 0};
}

TEST(FieldRecords, AreReadBackAsTheyWere) {
  FieldRecord record = flow();
  record.targets[0].shape = Shape{2, 4, 5};
  record.predicted.push_back({"label", Shape{4, 5}, DType::I32});
  record.classes = 7;
  const FieldRecord back = FieldRecord::parse(record.text());
  EXPECT_EQ(back.text(), record.text());
  EXPECT_EQ(back.normalisation, record.normalisation);
  EXPECT_EQ(back.predicted, record.predicted);
  EXPECT_EQ(back.targets[0].shape, record.targets[0].shape);
}

TEST(FieldRecords, TellTheUnitsOfTargetsAndOfTheColumnsOfATable) {
  int axis = 0;
  std::vector<metrics::TargetUnits> units = units_of(flow(), axis);
  EXPECT_EQ(axis, 1);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(std::tuple(units[0].name, units[0].channels, units[0].scale, units[0].logarithm),
            std::tuple(std::string("pressure"), 1, std::vector{0.5}, false));
  EXPECT_EQ(std::tuple(units[1].channels, units[1].shift, units[1].scale, units[1].logarithm),
            std::tuple(2, std::vector{0.25, 0.5}, std::vector{1.0, 2.0}, true));
  FieldRecord table = flow();
  table.axes = {};
  table.targets = {{.name = "target", .shape = Shape{2}, .columns = {"t", "u"}}};
  table.normalisation = data::Normalisation({{.field = "target", .channel_axis = 0, .shift = {5, 6}, .scale = {7, 8}}});
  units = units_of(table, axis);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(std::tuple(units[1].name, units[1].channels, units[1].shift, units[1].scale),
            std::tuple(std::string("u"), 1, std::vector{6.0}, std::vector{8.0}));
  table.axes = {.inputs = 1, .targets = 1, .series = true};
  table.targets = {{.name = "next", .shape = Shape{9, 3}}};
  units = units_of(table, axis);
  EXPECT_EQ(std::tuple(axis, units[0].channels, units[0].scale), std::tuple(2, 3, std::vector{1.0}));
}

TEST(FieldRecords, OtherTextsAreErrors) {
  const std::string text = flow().text();
  for (const std::string wrong : {"", "{}", "[]", "null", "{\"inputs\":[]}"})
    EXPECT_NE(error_of([&] { FieldRecord::parse(wrong); }).find("the checkpoint's record of its data"),
              std::string::npos)
        << wrong;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    EXPECT_NE(changed.find(from), changed.npos) << from;
    return changed.replace(changed.find(from), from.size(), to);
  };
  for (const std::string& wrong : {with("\"spatial_axes\":2", "\"spatial_axes\":9"), with("\"f32\"", "\"f33\""),
                                   with("[3,4,5]", "[3,-4,5]"), with("[3,4,5]", "\"big\"")})
    EXPECT_NE(error_of([&] { FieldRecord::parse(wrong); }), "no error") << wrong;
}

TEST(FieldRecords, NormaliseArraysOfOtherNamesInTheirOrder) {
  const std::vector<Field> fields{
      {"rho", Shape{8, 9}, DType::F64}, {"v", Shape{2, 8, 9}, DType::F32}, {"p", Shape{1, 8, 9}, DType::F32}};
  const data::Normalisation inputs = normalisation_of(flow(), fields, {"rho", "v"}, {});
  ASSERT_EQ(inputs.fields().size(), 2u);
  EXPECT_EQ(inputs.fields()[0], (data::FieldNormalisation{.field = "rho", .shift = {1.5}, .scale = {0.1}}));
  EXPECT_EQ(inputs.fields()[1],
            (data::FieldNormalisation{.field = "v", .channel_axis = 0, .shift = {1, 2}, .scale = {3, 4}}));
}

TEST(FieldRecords, RefuseArraysThatDoNotFit) {
  const Field rho{"rho", Shape{4, 5}, DType::F32}, v{"v", Shape{2, 4, 5}, DType::F32},
      w{"w", Shape{3, 4, 5}, DType::F32};
  const Field density{"density", Shape{4, 5}, DType::F32}, line{"line", Shape{4}, DType::F32};
  const auto tried = [&](const std::vector<std::string>& inputs, const std::vector<std::string>& targets = {}) {
    return error_of([&] { normalisation_of(flow(), {rho, v, w, density, line}, inputs, targets); });
  };
  EXPECT_EQ(tried({"rho", "v"}), "no error");
  EXPECT_NE(tried({"rho"}).find("--inputs has 1 arrays (rho), the model was trained with 2 (density, velocity)"),
            std::string::npos);
  EXPECT_NE(tried({"v", "density"}).find("'v' has samples (2, 4, 5), the model was trained with 'density'"),
            std::string::npos);
  EXPECT_NE(tried({"rho", "density"}).find("expected the order density, velocity"), std::string::npos);
  EXPECT_NE(tried({"rho", "w"}).find("expected 2 spatial dimensions and 2 channels"), std::string::npos);
  EXPECT_NE(tried({"line", "v"}).find("'line' has samples (4)"), std::string::npos);
  EXPECT_NE(
      tried({"rho", "v"}, {"rho"}).find("--targets has 1 arrays (rho), the model was trained with 2 (pressure, heat)"),
      std::string::npos);
}

TEST(FieldRecords, AbsentFieldsFollowTheInput) {
  FieldRecord record = flow();
  record.predicted.push_back({"label", Shape{4, 5}, DType::I32});
  record.predicted.push_back({"number", Shape{7}, DType::F32});
  const std::vector<Field> finer = absent_fields(record, Shape{3, 8, 10}, DType::F64);
  EXPECT_EQ(finer[0], (Field{"target", Shape{3, 8, 10}, DType::F64}));
  EXPECT_EQ(finer[1], (Field{"label", Shape{8, 10}, DType::I32}));
  EXPECT_EQ(finer[2], (Field{"number", Shape{7}, DType::F64}));
}

TEST(FieldRecords, DecodeDividesChannelsAndUndoesTheNormalisation) {
  const FieldRecord record = flow();
  Tensor prediction(Shape{2, 3, 4, 5}, DType::F64);
  for (std::size_t i = 0; i < 120; ++i) prediction.data<double>()[i] = std::sin(static_cast<double>(i));
  const Tensor copy = prediction.clone();
  const auto arrays = decoder(record)(std::move(prediction));
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "pressure");
  EXPECT_EQ(arrays[0].tensor.shape(), (Shape{2, 4, 5}));
  EXPECT_EQ(arrays[1].name, "heat");
  EXPECT_EQ(arrays[1].tensor.shape(), (Shape{2, 2, 4, 5}));
  const auto in = copy.data<double>();
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_NEAR(arrays[0].tensor.data<double>()[20 * s + i], 0.5 * in[60 * s + i] - 2, 1e-14);
      EXPECT_NEAR(arrays[1].tensor.data<double>()[40 * s + i], std::exp(in[60 * s + 20 + i] + 0.25) - 1, 1e-13);
      EXPECT_NEAR(arrays[1].tensor.data<double>()[40 * s + 20 + i], std::exp(2 * in[60 * s + 40 + i] + 0.5) - 1, 1e-12);
    }
  }
  EXPECT_NE(error_of([&] {
              decoder(record)(Tensor(Shape{2, 4, 4, 5}, DType::F64));
            }).find("expected (samples, 3 channels"),
            std::string::npos);
}

TEST(FieldRecords, ColumnsOfATableBecomeArrays) {
  const FieldRecord record{.inputs = {{.name = "input", .shape = Shape{1}, .columns = {"x"}}},
                           .targets = {{.name = "target", .shape = Shape{2}, .columns = {"heat", "flow"}}},
                           .normalisation = data::Normalisation(
                               {{.field = "target", .channel_axis = 0, .shift = {10, 20}, .scale = {2, 3}}}),
                           .input = Shape{1},
                           .predicted = {{"target", Shape{2}, DType::F32}}};
  const FieldRecord back = FieldRecord::parse(record.text());
  const std::vector<float> values{1, 2, 3, 4};
  const auto arrays = decoder(back)(Tensor::from<float>(Shape{2, 2}, values));
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "heat");
  EXPECT_EQ(arrays[1].name, "flow");
  EXPECT_EQ(arrays[0].tensor.shape(), Shape{2});
  EXPECT_EQ(arrays[0].tensor.data<float>()[1], 16);
  EXPECT_EQ(arrays[1].tensor.data<float>()[0], 26);
}

}  // namespace
}  // namespace lockstep::datasets
