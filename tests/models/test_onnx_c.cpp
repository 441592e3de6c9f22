// C source of models: the names in it, and which weights it takes. tests/scripts/check_export.py compiles and runs it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "lockstep/onnx/c/c_source.h"
#include "lockstep/onnx/document.h"
#include "tests/messages.h"
#include "tests/temporary_directory.h"

namespace lockstep {
namespace {

using test::TemporaryDirectory;

// The source of function(w * (sum of the inputs)), where all four elements of w are `weight`.
onnx::CSource c_source_of(const std::vector<std::string>& inputs, const std::string& function, float weight,
                          const std::string& name = "net") {
  const TemporaryDirectory folder;
  const Type type{Shape{1, 4}, DType::F32};
  onnx::Document document;
  for (const std::string& input : inputs) document.input(input, type);
  document.initial("w", Tensor::from<float>(Shape{4}, std::vector<float>(4, weight)));
  std::string sum = inputs.front();
  for (std::size_t i = 1; i < inputs.size(); ++i) sum = document.add("Add", {sum, inputs[i]});
  document.add(function, {document.add("Mul", {sum, "w"})}, {}, "y");
  document.output("y", type);
  const std::string path = folder.path("model.onnx");
  std::ofstream(path, std::ios::binary) << document.finish("model", "test");
  return onnx::c_source(path, name);
}

TEST(CSource, TakesOtherWeightsOfItsNetworkAndNoneOfAnother) {
  const auto structure = [](const onnx::CSource& source) { return source.weights.substr(8, 8); };
  const onnx::CSource one = c_source_of({"x"}, "Tanh", 1), two = c_source_of({"x"}, "Tanh", 2);
  const onnx::CSource other = c_source_of({"x"}, "Sigmoid", 1), named = c_source_of({"x"}, "Tanh", 1, "other");
  EXPECT_NE(one.weights, two.weights);
  EXPECT_EQ(one.source, two.source);
  EXPECT_EQ(structure(one), structure(two));
  EXPECT_EQ(structure(one), structure(named));
  EXPECT_EQ(one.weights.size(), other.weights.size());
  EXPECT_NE(structure(one), structure(other));
}

TEST(CSource, NamesInputsSoThatCAndCppTakeThem) {
  const onnx::CSource made = c_source_of({"class", "exp", "i0", "x", "ok", "NULL", "a.b"}, "Tanh", 1);
  EXPECT_TRUE(has(made.header,
                  "const float *in_class, const float *exp, const float *i0, const float *x, const float *in_ok, "
                  "const float *in_NULL, const float *a_b, float *output);"))
      << made.header;
  EXPECT_TRUE(has(made.header, "#define net_EXP 4\n")) << made.header;
  EXPECT_TRUE(has(made.source,
                  "const float *in_class, const float *in_exp, const float *in_i0, const float *in_x, "
                  "const float *in_ok, const float *in_NULL, const float *in_a_b, float *output)"))
      << made.source;
  const std::string message = error_of([] { c_source_of({"ab", "aB"}, "Tanh", 1); });
  EXPECT_TRUE(has(message, "differs in capital letters alone")) << message;
}

TEST(CSource, BeginsNamesWithAnyNameOfAFile) {
  const onnx::CSource made = c_source_of({"x"}, "Tanh", 1, "MY_NAME");
  EXPECT_TRUE(has(made.source, "#include \"MY_NAME.h\"\n")) << made.source;
  EXPECT_TRUE(has(made.header, "#ifndef MY_NAME_H\n#define MY_NAME_H\n")) << made.header;
  EXPECT_TRUE(has(made.header, "int MY_NAME_load(const char *path, MY_NAME_model **model);")) << made.header;
}

TEST(CSource, DoesNotReplaceTheModelThatIsRead) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path("net.onnx")) << "a model";
  EXPECT_EQ(onnx::onnx_beside(folder.path("net.c"), {"", "resnet18"}).string(), folder.path("net.onnx"));
  EXPECT_EQ(onnx::onnx_beside(folder.path("other.c"), {folder.path("net.onnx")}).string(), folder.path("other.onnx"));
  const std::string same = error_of([&] { onnx::onnx_beside(folder.path("net.c"), {folder.path("./net.onnx")}); });
  EXPECT_TRUE(has(same, "expected another name of the C source")) << same;
  const std::string wrong = error_of([&] { onnx::onnx_beside(folder.path("2.c"), {}); });
  EXPECT_TRUE(has(wrong, "letter in front")) << wrong;
}

}  // namespace
}  // namespace lockstep
