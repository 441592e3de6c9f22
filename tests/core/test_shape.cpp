// Shapes and tensors say what is wrong with what they are asked for, where indexing would leave their memory.
#include "lockstep/core/shape.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lockstep/core/tensor.h"
#include "tests/messages.h"

namespace lockstep {
namespace {

TEST(Shape, ADimensionThatIsNotThereIsAnError) {
  Shape images{64, 3, 32, 30};
  EXPECT_EQ(images[0], 64);
  EXPECT_EQ(images[3], 30);
  EXPECT_EQ(error_of([&] { (void)std::as_const(images)[4]; }),
            "[shape] dimension 4 of (64, 3, 32, 30) was asked for, expected 0 to 3");
  EXPECT_EQ(error_of([&] { (void)std::as_const(images)[-1]; }),
            "[shape] dimension -1 of (64, 3, 32, 30) was asked for, expected 0 to 3");
  EXPECT_EQ(error_of([&] { images[100] = 1; }),
            "[shape] dimension 100 of (64, 3, 32, 30) was asked for, expected 0 to 3");
  EXPECT_EQ(error_of([] { (void)Shape{}[0]; }), "[shape] dimension 0 of a scalar was asked for: it has no dimensions");
}

TEST(Shape, AScalarIsNoBatch) {
  EXPECT_EQ((Shape{5, 3}.tail()), (Shape{3}));
  EXPECT_EQ(error_of([] { (void)Shape{}.tail(); }),
            "[shape] dimension 0 of a scalar was asked for: it has no dimensions");
}

TEST(Shape, MoreElementsThanCanBeCountedAreAnError) {
  constexpr std::int64_t kMany = std::int64_t{1} << 32;
  EXPECT_EQ((Shape{kMany, kMany / 4}.elements()), kMany * (kMany / 4));
  const std::string text =
      "[shape] (4294967296, 4294967296) has more elements than can be counted, expected fewer than 2^63";
  EXPECT_EQ(error_of([] { (void)Shape{kMany, kMany}.elements(); }), text);
  EXPECT_EQ(error_of([] { Tensor(Shape{kMany, kMany}, DType::F32); }), text);
  EXPECT_EQ(error_of([] {
              Tensor(Shape{kMany, kMany / 4}, DType::F64);
            }),
            "[tensor] (4294967296, 1073741824) f64 are more bytes than can be counted");
}

TEST(Tensor, OneWithoutMemorySaysSo) {
  const std::string text = "[tensor] this tensor has no elements: it was made without a shape, or moved from";
  const Tensor none;
  Tensor left({2, 3}, DType::F32);
  const Tensor right = std::move(left);
  for (const Tensor* tensor : {&none, const_cast<const Tensor*>(&left)}) {  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(tensor->empty());
    EXPECT_EQ(error_of([&] { (void)tensor->data<float>(); }), text);
    EXPECT_EQ(error_of([&] { (void)tensor->clone(); }), text);
    EXPECT_EQ(error_of([&] { (void)tensor->to(DType::F64); }), text);
  }
  EXPECT_EQ(right.data<float>().size(), 6u);
}

TEST(Tensor, OverMemoryOfTheCallerCopiesNothing) {
  float values[] = {1, 2, 3, 4, 5, 6};
  {
    Tensor over = Tensor::over({2, 3}, DType::F32, static_cast<void*>(values));
    EXPECT_EQ(static_cast<void*>(over.raw()), static_cast<void*>(values));
    over.data<float>()[5] = 7;
    const Tensor moved = std::move(over), own = moved.clone();
    EXPECT_NE(static_cast<const void*>(own.raw()), static_cast<const void*>(values));
    EXPECT_EQ(own.data<float>()[5], 7);
  }  // frees the copy alone
  EXPECT_EQ(values[5], 7);
  EXPECT_TRUE(Tensor::over({0, 3}, DType::F32, nullptr).empty());
  EXPECT_NE(error_of([] { Tensor::over({2}, DType::F64, nullptr); }).find("no memory for shape (2)"),
            std::string::npos);
}

TEST(Tensor, NoSamplesAreNoError) {
  const Tensor empty({0, 3}, DType::F32);
  EXPECT_TRUE(empty.data<float>().empty());
  EXPECT_EQ(empty.clone().shape(), empty.shape());
  EXPECT_EQ(empty.to(DType::F64).dtype(), DType::F64);
}

}  // namespace
}  // namespace lockstep
