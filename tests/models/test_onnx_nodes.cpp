// Single operators of ONNX, as other programs write them, against values computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/onnx/document.h"
#include "lockstep/onnx/import/imported_model.h"
#include "tests/messages.h"
#include "tests/temporary_directory.h"

namespace lockstep {
namespace {

using onnx::Document;
using test::TemporaryDirectory;
using Numbers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

Tensor counted(const Shape& shape) {
  Tensor tensor(shape, DType::F32);
  std::iota(tensor.data<float>().begin(), tensor.data<float>().end(), 0.0F);
  return tensor;
}

// Computes a model of one input "x", whose nodes `write` adds; it returns the name of the result.
template <class Write>
Tensor computed(const Tensor& x, const Write& write, std::int64_t batch_of_file = 0) {
  const TemporaryDirectory folder;
  Document document;
  Shape shape = x.shape();
  if (batch_of_file > 0) shape[0] = batch_of_file;
  document.input("x", {shape, DType::F32});
  const std::string result = write(document);
  document.add("Identity", {result}, {}, "y");
  document.output("y", {Shape{1}, DType::F32});
  std::ofstream(folder.path("model.onnx"), std::ios::binary) << document.finish("model", "test");
  const onnx::ImportedModel model(folder.path("model.onnx"));
  infer::Predictor predict(model, [&](const plan::Inputs& in) { return model(in["x"]); }, {.input = "x"});
  return predict(x);
}

Floats values_of(const Tensor& tensor) { return {tensor.data<float>().begin(), tensor.data<float>().end()}; }

TEST(OnnxNodes, PadWindowsDifferentlyAtTheTwoEnds) {
  const Tensor x = counted({1, 1, 1, 4});
  const auto convolve = [](const std::vector<onnx::Attribute>& attributes) {
    return [=](Document& d) {
      d.initial("w", Tensor::from<float>(Shape{1, 1, 1, 2}, Floats{10, 1}));
      return d.add("Conv", {"x", "w"}, attributes);
    };
  };
  EXPECT_EQ(values_of(computed(x, convolve({{"pads", Numbers{0, 1, 0, 0}}}))), (Floats{0, 1, 12, 23}));
  EXPECT_EQ(values_of(computed(x, convolve({{"auto_pad", std::string("SAME_UPPER")}}))), (Floats{1, 12, 23, 30}));
  EXPECT_EQ(values_of(computed(x, convolve({{"auto_pad", std::string("SAME_LOWER")}}))), (Floats{0, 1, 12, 23}));
  const auto pool = [](Document& d) {
    return d.add("MaxPool", {d.add("Neg", {"x"})},
                 {{"kernel_shape", Numbers{1, 2}}, {"strides", Numbers{1, 2}}, {"pads", Numbers{0, 1, 0, 0}}});
  };
  EXPECT_EQ(values_of(computed(x, pool)), (Floats{0, -1}));  // the padding is less than every number
}

TEST(OnnxNodes, ComputeSizesFromShapes) {
  // x.view(x.size(0), -1) as PyTorch exports it, for another number of samples than the file's.
  const auto view = [](Document& d) {
    const std::string shape = d.add("Shape", {"x"});
    const std::string samples = d.add("Gather", {shape, d.constant(Tensor::from<std::int64_t>(Shape{}, Numbers{0}))},
                                      {{"axis", std::int64_t{0}}});
    const std::string sizes =
        d.add("Concat", {d.add("Unsqueeze", {samples, d.list({0})}), d.list({-1})}, {{"axis", std::int64_t{0}}});
    return d.add("Reshape", {"x", sizes});
  };
  EXPECT_EQ(computed(counted({3, 2, 2}), view, 1).shape(), (Shape{3, 4}));
  // A fixed number of samples gives way to the number that is there, and so does -1.
  const auto fixed = [](Document& d) { return d.add("Reshape", {"x", d.list({2, 4})}); };
  EXPECT_EQ(computed(counted({3, 2, 2}), fixed, 2).shape(), (Shape{3, 4}));
  const auto open = [](Document& d) { return d.add("Reshape", {"x", d.list({2, -1})}); };
  EXPECT_EQ(computed(counted({3, 2, 2}), open, 2).shape(), (Shape{3, 4}));
  // 1 / sqrt of the last size, as attention has it.
  const auto scale = [](Document& d) {
    const std::string last = d.add("Slice", {d.add("Shape", {"x"}), d.list({-1}), d.list({1 << 30}), d.list({0})});
    const std::string root = d.add("Sqrt", {d.add("Cast", {last}, {{"to", std::int64_t{1}}})});
    return d.add("Div", {"x", root});
  };
  EXPECT_EQ(values_of(computed(counted({1, 4}), scale)), (Floats{0, 0.5F, 1, 1.5F}));
}

TEST(OnnxNodes, TakePartsAndPad) {
  const auto slice = [](const Numbers& starts, const Numbers& ends, const Numbers& steps) {
    return [=](Document& d) { return d.add("Slice", {"x", d.list(starts), d.list(ends), d.list({1}), d.list(steps)}); };
  };
  const Tensor x = counted({1, 5});
  EXPECT_EQ(values_of(computed(x, slice({1}, {-1}, {2}))), (Floats{1, 3}));
  EXPECT_EQ(values_of(computed(x, slice({-2}, {100}, {1}))), (Floats{3, 4}));
  EXPECT_EQ(values_of(computed(x, slice({-1}, {std::numeric_limits<std::int64_t>::min()}, {-2}))), (Floats{4, 2, 0}));
  const auto gather = [](Document& d) {
    return d.add("Gather", {"x", d.list({3, 4, 0, -1})}, {{"axis", std::int64_t{1}}});
  };
  EXPECT_EQ(values_of(computed(x, gather)), (Floats{3, 4, 0, 4}));
  const auto reflect = [](Document& d) {
    return d.add("Pad", {"x", d.list({0, 2, 0, 1})}, {{"mode", std::string("reflect")}});
  };
  EXPECT_EQ(values_of(computed(x, reflect)), (Floats{2, 1, 0, 1, 2, 3, 4, 3}));
  const auto constant = [](Document& d) { return d.add("Pad", {"x", d.list({0, 1, 0, 0}), d.scalar(7, DType::F32)}); };
  EXPECT_EQ(values_of(computed(x, constant)), (Floats{7, 0, 1, 2, 3, 4}));
}

TEST(OnnxNodes, ApplyFunctionsWithTheirAttributes) {
  const Tensor x = Tensor::from<float>(Shape{1, 4}, Floats{-2, -0.5F, 0.5F, 2});
  const auto one = [](const std::string& op, const std::vector<onnx::Attribute>& attributes = {}) {
    return [=](Document& d) { return d.add(op, {"x"}, attributes); };
  };
  EXPECT_EQ(values_of(computed(x, one("LeakyRelu", {{"alpha", 0.5}}))), (Floats{-1, -0.25F, 0.5F, 2}));
  EXPECT_EQ(values_of(computed(x, one("HardSigmoid", {{"alpha", 0.5}, {"beta", 0.5}}))), (Floats{0, 0.25F, 0.75F, 1}));
  const auto clip = [](Document& d) { return d.add("Clip", {"x", d.scalar(-1, DType::F32), d.scalar(1, DType::F32)}); };
  EXPECT_EQ(values_of(computed(x, clip)), (Floats{-1, -0.5F, 0.5F, 1}));
  const auto open = [](Document& d) { return d.add("Clip", {"x", "", d.scalar(1, DType::F32)}); };
  EXPECT_EQ(values_of(computed(x, open)), (Floats{-2, -0.5F, 0.5F, 1}));
  const auto prelu = [](Document& d) {
    d.initial("slope", Tensor::from<float>(Shape{4}, Floats{1, 2, 3, 4}));
    return d.add("PRelu", {"x", "slope"});
  };
  EXPECT_EQ(values_of(computed(x, prelu)), (Floats{-2, -1, 0.5F, 2}));
  const auto choose = [](Document& d) {
    const std::string condition = d.add("Not", {d.add("Greater", {"x", d.scalar(0, DType::F32)})});
    return d.add("Where", {condition, d.scalar(9, DType::F32), "x"});
  };
  EXPECT_EQ(values_of(computed(x, choose)), (Floats{9, 9, 0.5F, 2}));
  const auto gemm = [](Document& d) {
    d.initial("w", Tensor::from<float>(Shape{4, 1}, Floats{1, 1, 1, 1}));
    d.initial("b", Tensor::from<float>(Shape{1}, Floats{3}));
    return d.add("Gemm", {"x", "w", "b"}, {{"alpha", 2.0}, {"beta", 0.5}});
  };
  EXPECT_EQ(values_of(computed(x, gemm)), (Floats{1.5F}));
}

TEST(OnnxNodes, EnlargeImages) {
  const Tensor x = counted({1, 1, 2, 2});
  const auto resize = [](const std::string& mode, const std::string& places) {
    return [=](Document& d) {
      d.initial("scales", Tensor::from<float>(Shape{4}, Floats{1, 1, 1, 2}));
      return d.add(
          "Resize", {"x", "", "scales"},
          {{"mode", mode}, {"coordinate_transformation_mode", places}, {"nearest_mode", std::string("floor")}});
    };
  };
  EXPECT_EQ(values_of(computed(x, resize("nearest", "asymmetric"))), (Floats{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values_of(computed(x, resize("linear", "half_pixel"))), (Floats{0, 0.25F, 0.75F, 1, 2, 2.25F, 2.75F, 3}));
}

TEST(OnnxNodes, MakeOneElementOfAnAxisAsTheirModeSays) {
  const auto resize = [](const std::string& places, const std::string& policy = "stretch") {
    return [=](Document& d) {
      return d.add("Resize", {"x", "", "", d.list({1, 1, 2, 1})},
                   {{"mode", std::string("linear")},
                    {"coordinate_transformation_mode", places},
                    {"keep_aspect_ratio_policy", policy}});
    };
  };
  const Tensor x = counted({1, 1, 2, 2});
  EXPECT_EQ(values_of(computed(x, resize("half_pixel"))), (Floats{0.5F, 2.5F}));
  EXPECT_EQ(values_of(computed(x, resize("pytorch_half_pixel"))), (Floats{0, 2}));
  const std::string message = error_of([&] { computed(x, resize("half_pixel", "not_larger")); });
  EXPECT_TRUE(has(message, "keep_aspect_ratio_policy is not_larger, expected stretch")) << message;
}

TEST(OnnxNodes, CountAxesFromTheEnd) {
  const auto flatten = [](std::int64_t axis) {
    return [=](Document& d) { return d.add("Flatten", {"x"}, {{"axis", axis}}); };
  };
  const Tensor x = counted({1, 2, 3});
  EXPECT_EQ(computed(x, flatten(-1)).shape(), (Shape{2, 3}));
  EXPECT_EQ(computed(x, flatten(-3)).shape(), (Shape{1, 6}));
  EXPECT_EQ(computed(x, flatten(3)).shape(), (Shape{6, 1}));
}

// Constants from which sizes are computed have axes too.
TEST(OnnxNodes, ComputeSizesAlongAxes) {
  const auto reshaped = [](Document& d, const std::string& sizes) { return d.add("Reshape", {"x", sizes}); };
  const auto axes = [&](Document& d) {
    const std::string column = d.add("Unsqueeze", {d.list({1, 4}), d.list({1})});
    const std::string row = d.add("Transpose", {column}, {{"perm", Numbers{1, 0}}});
    return reshaped(d, d.add("Squeeze", {row, d.list({0})}));
  };
  EXPECT_EQ(computed(counted({1, 2, 2}), axes).shape(), (Shape{1, 4}));
  const auto longer = [&](Document& d) { return reshaped(d, d.add("Squeeze", {d.list({1, 4}), d.list({0})})); };
  EXPECT_TRUE(has(error_of([&] { computed(counted({1, 2, 2}), longer); }), "has more than one element"));
  const auto pairs = [&](Document& d) {  // (1; 2) + (0, 1) = (1, 2; 2, 3)
    const std::string column = d.add("Unsqueeze", {d.list({1, 2}), d.list({1})});
    const std::string row = d.add("Unsqueeze", {d.list({0, 1}), d.list({0})});
    return reshaped(d, d.add("Reshape", {d.add("Add", {column, row}), d.list({-1})}));
  };
  EXPECT_EQ(computed(counted({1, 12}), pairs).shape(), (Shape{1, 2, 2, 3}));
}

// A part without a form here is an error that names the node and the part.
TEST(OnnxNodes, WithoutAFormAreErrors) {
  const auto refused = [](const auto& write) { return error_of([&] { computed(counted({1, 1, 4, 4}), write); }); };
  EXPECT_TRUE(
      has(refused([](Document& d) { return d.add("NonZero", {"x"}); }), "the operator NonZero has no form here"));
  EXPECT_TRUE(has(refused([](Document& d) {
                    return d.add("Relu", {"x"}, {{"slope", 1.0}});
                  }),
                  "(Relu): the attribute slope has no form here"));
  EXPECT_TRUE(
      has(refused([](Document& d) { return d.add("Relu", {"nowhere"}); }), "it reads nowhere, expected an input"));
  EXPECT_TRUE(has(refused([](Document& d) {
                    return d.add("Reshape", {"x", d.list({3, 5})});
                  }),
                  "a value of shape (1, 1, 4, 4) becomes (3, 5), expected as many elements"));
  EXPECT_TRUE(has(refused([](Document& d) {
                    return d.add("Reshape", {"x", "x"});
                  }),
                  "the shape is known only when the model runs, expected a constant"));
  EXPECT_TRUE(has(refused([](Document& d) {
                    return d.add("Transpose", {"x"}, {{"perm", Numbers{0, 9, 1, 2}}});
                  }),
                  "9"));
  EXPECT_TRUE(has(refused([](Document& d) {
                    d.initial("w", Tensor(Shape{1, 2, 3, 3}, DType::F32));
                    return d.add("Conv", {"x", "w"});
                  }),
                  "channels"));
  EXPECT_TRUE(has(refused([](Document& d) {
                    for (const char* name : {"scale", "shift", "mean", "variance"})
                      d.initial(name, Tensor::from<float>(Shape{1}, Floats{1}));
                    d.add("BatchNormalization", {"x", "scale", "shift", "mean", "variance"},
                          std::vector<std::string>{"z", "new_mean"}, {});
                    return std::string("z");
                  }),
                  "the statistics of the batch are outputs"));
}

// PyTorch 2 computes sizes of attention by it.
TEST(OnnxNodes, FoldModOfSizes) {
  const auto sizes_of = [](std::int64_t fmod, const Numbers& added) {
    return computed(counted({1, 48}),
                    [&](Document& d) {
                      const std::string rests =
                          d.add("Mod", {d.list({7, -7, 7, -7}), d.list({3, 3, -3, -3})}, {{"fmod", fmod}});
                      return d.add("Reshape", {"x", d.add("Add", {rests, d.list(added)})});
                    })
        .shape();
  };
  EXPECT_EQ(sizes_of(0, {0, 0, 4, 13}), (Shape{1, 2, 2, 12}));  // rests 1, 2, -2, -1
  EXPECT_EQ(sizes_of(1, {0, 3, 1, 13}), (Shape{1, 2, 2, 12}));  // rests 1, -1, 1, -1
}

// Files may be damaged or hostile: constants that are missing, empty or as large as numbers can be.
TEST(OnnxNodes, RefuseConstantsThatDoNotFit) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto refused = [](const std::string& op, const std::vector<Numbers>& lists,
                          const std::vector<onnx::Attribute>& attributes = {}) {
    return error_of([&] {
      computed(counted({1, 1, 4, 4}), [&](Document& d) {
        std::vector<std::string> inputs;
        for (const Numbers& list : lists) inputs.push_back(d.list(list));
        return d.add("Reshape", {"x", d.add(op, inputs, attributes)});
      });
    });
  };
  EXPECT_TRUE(has(refused("Add", {{1}}), "input 1 is missing, expected a constant"));
  EXPECT_EQ(
      values_of(computed(counted({1, 4}),
                         [](Document& d) {  // reshaped to (range(1, 2), range(4, 5)) = (1, 4)
                           const auto number = [&](std::int64_t n) {
                             return d.constant(Tensor::from<std::int64_t>(Shape{}, Numbers{n}));
                           };
                           const std::string one = d.add("Range", {number(1), number(2), number(1)});
                           const std::string four = d.add("Range", {number(4), number(5), number(1)});
                           return d.add("Reshape", {"x", d.add("Concat", {one, four}, {{"axis", std::int64_t{0}}})});
                         })),
      (Floats{0, 1, 2, 3}));
  const std::string range = refused("Range", {{1}, {2, 3}, {1}});
  EXPECT_TRUE(has(range, "a range of lists")) << range;
  EXPECT_TRUE(has(refused("Div", {{kLeast}, {-1}}), "is divided by -1"));
  EXPECT_TRUE(has(refused("Mod", {{1, 2}, {0}}), "is divided by 0"));
  EXPECT_TRUE(has(refused("Neg", {{kLeast}}), "is no number of 64 bits"));
  EXPECT_TRUE(has(refused("Mul", {{kLeast}, {2}}), "is no number of 64 bits"));
  EXPECT_NE(refused("Mul", {{}, {2}}), "no error") << "a list of nothing is no shape of 16 elements";
  EXPECT_NE(refused("Concat", {}, {{"axis", 0}}), "no error");
  const auto of_image = [](const std::string& op, const std::vector<onnx::Attribute>& attributes,
                           const std::vector<Numbers>& lists = {}) {
    return error_of([&] {
      computed(counted({1, 4, 4, 4}), [&](Document& d) {
        std::vector<std::string> inputs{"x"};
        for (const Numbers& list : lists) inputs.push_back(d.list(list));
        return d.add(op, inputs, attributes);
      });
    });
  };
  EXPECT_TRUE(has(of_image("DepthToSpace", {{"blocksize", std::int64_t{1} << 32}}), "does not divide into blocks"));
  EXPECT_NE(of_image("Resize", {}, {{1}, {1}, {1}}), "no error");
}

}  // namespace
}  // namespace lockstep
