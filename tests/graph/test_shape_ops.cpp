// Ops that move elements refuse shapes, axes and indices that do not fit: the error names op, module path and both
// sides.
#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/to_floating.h"
#include "tests/graph/shape_errors.h"

namespace lockstep {
namespace {

using ShapeOps = ShapeErrors;

TEST_F(ShapeOps, RefuseAxesThatAreNotThere) {
  const Value x = value({2, 3});
  expect("[slice] layer1.0.conv1: axis is 2, expected -2 to 1 for an input f32(2, 3)", [&] { slice(x, 2, 0, 1); });
  expect("[transpose] layer1.0.conv1: axis is -3, expected -2 to 1 for an input f32(2, 3)",
         [&] { transpose(x, 0, -3); });
  expect("[flip] layer1.0.conv1: axis 1 is named twice, expected different axes of an input f32(2, 3)", [&] {
    flip(x, {1, -1});
  });
  expect("[unsqueeze] layer1.0.conv1: new axis 4 beside those of f32(2, 3), expected -3 to 2",
         [&] { unsqueeze(x, 4); });
  expect("[permute] layer1.0.conv1: axes (1) of f32(2, 3), expected each of its 2 axes once", [&] { permute(x, {1}); });
}

TEST_F(ShapeOps, RefusePartsThatAreNotThere) {
  const Value x = value({2, 5});
  expect("[slice] layer1.0.conv1: axis 1 of f32(2, 5): elements 3 to 5 with step 1, expected elements from 0 to 4",
         [&] { slice(x, 1, 3, 3); });
  expect("[slice] layer1.0.conv1: axis 1 of f32(2, 5): elements 1 to -1 with step -1, expected elements from 0 to 4",
         [&] { slice(x, 1, 1, 3, -1); });
  expect("[slice] layer1.0.conv1: axis 0 of f32(2, 5): 1 elements with step 0, expected a step other than 0",
         [&] { slice(x, 0, 0, 1, 0); });
  expect("[slice] layer1.0.conv1: axis 0 of f32(2, 5): elements 2 to 2 with step 1, expected elements from 0 to 1",
         [&] { select(x, 0, 2); });
  expect("[place] layer1.0.conv1: input is f32(2, 5), expected (2, 4), the lengths of the ranges", [&] {
    place(x, Shape{3, 5}, {{0, 2}, {0, 4}});
  });
  expect("[split] layer1.0.conv1: parts of (2, 2) elements of axis 1 of f32(2, 5), expected sizes that add up to 5",
         [&] {
           split(x, std::vector<std::int64_t>{2, 2}, 1);
         });
  EXPECT_EQ(slice(x, 1, 0, 5), x) << "the whole value is itself";
  EXPECT_EQ(split(x, 5, 1)[0], x);
  EXPECT_EQ(permute(x, {0, 1}), x);
}

TEST_F(ShapeOps, RefuseValuesThatDoNotJoin) {
  const Value x = value({2, 5});
  expect(
      "[concat] layer1.0.conv1: values are f32(2, 5) and f32(3, 5), expected one type, and shapes that differ along "
      "axis 1 "
      "alone",
      [&] {
        concat({x, value({3, 5})}, 1);
      });
  expect(
      "[concat] layer1.0.conv1: values are f32(2, 5) and f64(2, 5), expected one type, and shapes that differ along "
      "axis 1 "
      "alone",
      [&] {
        concat({x, value({2, 5}, DType::F64)}, 1);
      });
  EXPECT_THROW(concat({}, 0), Error);
  EXPECT_THROW(stack({x, value({2, 4})}), Error);
}

TEST_F(ShapeOps, RefuseMorePaddingThanThereIs) {
  const Value x = value({2, 3});
  expect(
      "[pad] layer1.0.conv1: padding 3 + 0 of axis 1 of f32(2, 3) by mode reflect, expected at most 2 elements at each "
      "end",
      [&] {
        pad(x, {3, 0}, PadMode::Reflect);
      });
  expect(
      "[pad] layer1.0.conv1: padding 0 + 4 of axis 1 of f32(2, 3) by mode circular, expected at most 3 elements at "
      "each end",
      [&] {
        pad(x, {0, 4}, PadMode::Circular);
      });
  expect(
      "[pad] layer1.0.conv1: padding 1 + 0 of axis 1 of f32(2, 0) by mode replicate, expected at least 1 element to "
      "repeat",
      [&] {
        pad(value({2, 0}), {1, 0}, PadMode::Replicate);
      });
  expect("[pad] layer1.0.conv1: padding (1, 2, 3) of f32(2, 3), expected two numbers for each of at most 2 axes", [&] {
    pad(x, {1, 2, 3});
  });
  expect("[pad] layer1.0.conv1: 2 and 2 elements are cut off axis 1 of f32(2, 3), expected no more than it has", [&] {
    pad(x, {-2, -2});
  });
}

TEST_F(ShapeOps, RefuseIndicesThatAreNotI32OrDoNotFit) {
  const Value x = value({4, 5}), wide = value({3}, DType::I64), index = value({2, 5}, DType::I32);
  expect("[index_select] layer1.0.conv1: indices are i64(3), expected i32", [&] { index_select(x, 0, wide); });
  expect(
      "[gather] layer1.0.conv1: indices are (2, 5) for a value (4, 4), expected as many axes, and no more elements "
      "along "
      "any but axis 0",
      [&] {
        gather(x, 0, index);
        gather(value({4, 4}), 0, index);
      });
  expect("[embedding] layer1.0.conv1: the table is f32(4), expected (rows, elements of a row) of a floating type",
         [&] { embedding(index, value({4})); });
  expect("[embedding] layer1.0.conv1: the padding row is 4, expected 0 to 3", [&] { embedding(index, x, 4); });
}

TEST_F(ShapeOps, RefusePixelsThatDoNotDivide) {
  expect("[pixel_shuffle] layer1.0.conv1: input f32(1, 6, 2, 2) has 6 channels, expected a multiple of 4", [&] {
    pixel_shuffle(value({1, 6, 2, 2}), 2);
  });
  expect("[pixel_unshuffle] layer1.0.conv1: input f32(1, 1, 4, 3) has images of 4x3, expected multiples of 2", [&] {
    pixel_unshuffle(value({1, 1, 4, 3}), 2);
  });
}

TEST_F(ShapeOps, RefuseConversionsThatAreNone) {
  expect("[to_floating] layer1.0.conv1: no conversion from f32 to f64, expected an integer type and a floating one",
         [&] { to_floating(value({2}), DType::F64); });
  EXPECT_EQ(where(value({2}, DType::U8), value({2}), 0.0).dtype(), DType::F32);
  EXPECT_EQ(where(value({2}), value({2}, DType::BF16), 0.0).dtype(), DType::BF16);
}

TEST_F(ShapeOps, KeepAnEmptyBatch) {
  const Value x = value({0, 4, 6});
  EXPECT_EQ(flatten(x, 1).shape(), (Shape{0, 24}));
  EXPECT_EQ(pad(x, {1, 1}, PadMode::Circular).shape(), (Shape{0, 4, 8}));
  EXPECT_EQ(roll(x, {1, 1}, {0, 1}).shape(), x.shape());
  EXPECT_EQ(concat({x, x}, 0).shape(), x.shape());
  EXPECT_EQ(permute(x, {2, 0, 1}).shape(), (Shape{6, 0, 4}));
  EXPECT_EQ(chunk(x, 2, 1).size(), 2U);
}

}  // namespace
}  // namespace lockstep
