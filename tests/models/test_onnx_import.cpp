// Models that are read from files of ONNX: what export has written computes the same, trains the same, and files that
// are damaged or have parts without a form are errors that name them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/onnx/document.h"
#include "lockstep/onnx/export.h"
#include "lockstep/onnx/import/imported_model.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/resample.h"
#include "models/zoo/registry.h"
#include "tests/messages.h"
#include "tests/temporary_directory.h"

namespace lockstep {
namespace {

using test::TemporaryDirectory;

Tensor normal(const Shape& shape, std::uint64_t seed = 1) {
  Tensor tensor(shape, DType::F32);
  RandomStream random(seed, 0);
  for (float& value : tensor.data<float>()) value = static_cast<float>(random.normal());
  return tensor;
}

Shape small_image(const models::ModelEntry& entry) {
  return entry.image == Shape{3, 224, 224} ? Shape{3, 32, 32} : entry.image;
}

// Initial weights, but for running statistics, which are changed so that they matter.
std::vector<io::NamedTensor> weights_of(const models::Classifier& model, const Shape& image) {
  infer::Predictor predict(model, [&](const plan::Inputs& in) { return model(in["image"]); });
  predict(normal(image.batched(1)));
  std::vector<io::NamedTensor> weights;
  for (const NamedParameter& named : model.named_parameters()) {
    Tensor values = predict.parameters().read(named.name);
    const bool changed = named.name.ends_with("running_mean") || named.name.ends_with("running_var");
    for (std::size_t i = 0; changed && i < static_cast<std::size_t>(values.elements()); ++i)
      values.data<float>()[i] += 0.01F * static_cast<float>(i % 7);
    weights.push_back({named.name, std::move(values)});
  }
  return weights;
}

std::string write_model(const TemporaryDirectory& folder, const models::Classifier& model, const Shape& image,
                        std::int64_t batch, const std::vector<io::NamedTensor>& weights) {
  Graph graph(Mode::Eval, DType::F32);
  const Value output = model(graph.input("image", {image.batched(batch), DType::F32}));
  onnx::ExportSource source{.name = "model", .version = "test"};
  for (const NamedParameter& named : model.named_parameters()) source.names[named.parameter] = named.name;
  source.weights = [&](const std::string& name) {
    return std::ranges::find(weights, name, &io::NamedTensor::name)->tensor.clone();
  };
  std::ofstream(folder.path("model.onnx"), std::ios::binary) << onnx::export_graph(graph, output, "logits", source);
  return folder.path("model.onnx");
}

class ImportedZoo : public testing::TestWithParam<std::string> {};

TEST_P(ImportedZoo, ComputesTheLogitsOfTheModelThatWasWrittenForAnotherNumberOfSamples) {
  const TemporaryDirectory folder;
  const models::ModelEntry entry = models::find_model(GetParam());
  const Shape image = small_image(entry);
  const auto model = models::build_model(entry.name, 7, image);
  const std::vector<io::NamedTensor> weights = weights_of(*model, image);
  const auto read = models::build_model(write_model(folder, *model, image, 2, weights), 7);

  const Tensor images = normal(image.batched(3), 2);
  infer::Predictor original(*model, [&](const plan::Inputs& in) { return (*model)(in["image"]); });
  original.load(weights);
  infer::Predictor predict(*read, [&](const plan::Inputs& in) { return (*read)(in["image"]); });
  const Tensor expected = original(images), logits = predict(images);
  ASSERT_EQ(logits.shape(), (Shape{3, 7}));
  double largest = 0;
  for (const float value : expected.data<float>()) largest = std::max(largest, std::abs(double{value}));
  ASSERT_GT(largest, 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(logits.elements()); ++i)
    EXPECT_NEAR(logits.data<float>()[i], expected.data<float>()[i], 2e-5 * largest) << i;
}

INSTANTIATE_TEST_SUITE_P(Onnx, ImportedZoo,
                         testing::Values("toy", "mnist_mlp", "mnist_convnet", "resnet20", "resnet50",
                                         "densenet100_cifar", "mobilenet_v2_cifar", "vgg11_bn", "vit_mini_cifar",
                                         "resnext50_32x4d"),
                         [](const auto& tested) { return tested.param; });

// Loss and gradients of training, by name, with one batch.
std::map<std::string, Tensor> gradients_of(const models::Classifier& model, const Shape& image) {
  plan::CompiledModel compiled(model.named_parameters(), [&](const plan::Inputs& in) {
    const Value logits = model(in["image"]);
    return plan::Traced{.loss = cross_entropy(logits, in["label"]), .prediction = logits};
  });
  plan::Plan& plan =
      compiled.plan(Mode::Train, {{"image", {image.batched(4), DType::F32}}, {"label", {Shape{4}, DType::I32}}});
  const Tensor images = normal(image.batched(4), 3);
  std::ranges::copy(images.data<float>(), static_cast<float*>(plan.input("image")));
  for (std::int32_t i = 0; i < 4; ++i) static_cast<std::int32_t*>(plan.input("label"))[i] = i % 7;
  plan.run();
  std::map<std::string, Tensor> result;
  for (const NamedParameter& named : model.named_parameters()) {
    if (named.parameter->trainable) result[named.name] = compiled.parameters().read_gradient(named.name);
  }
  return result;
}

TEST(ImportedModel, TrainsAsTheModelThatWasWritten) {
  const TemporaryDirectory folder;
  const Shape image{3, 16, 16};
  const auto model = models::build_model("resnet20", 7, image);
  const auto read = models::build_model(write_model(folder, *model, image, 1, weights_of(*model, image)), 7);
  const auto expected = gradients_of(*model, image), gradients = gradients_of(*read, image);
  ASSERT_EQ(gradients.size(), expected.size());
  for (const auto& [name, gradient] : expected) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    EXPECT_TRUE(std::ranges::equal(gradient.data<float>(), gradients.at(name).data<float>())) << name;
  }
}

TEST(ImportedModel, TakesTheSizesThatItsFileLeavesOpenFromTheCaller) {
  const TemporaryDirectory folder;
  const std::string path = folder.path("open.onnx");
  onnx::Document document;
  document.input("image", {Shape{1, 3, 0, 0}, DType::F32});  // a file says 0 where it leaves a size open
  document.add("ReduceMean", {"image"}, {{"axes", std::vector<std::int64_t>{2, 3}}, {"keepdims", std::int64_t{0}}},
               "logits");
  document.output("logits", {Shape{1, 3}, DType::F32});
  std::ofstream(path, std::ios::binary) << document.finish("model", "test");
  EXPECT_EQ(models::find_model(path).image, Shape());
  const std::string message = error_of([&] { models::build_model(path); });
  EXPECT_TRUE(has(message, "open.onnx: the input has sizes that the file leaves open, expected --shape")) << message;
  const auto model = models::build_model(path, 3, {3, 8, 6});
  infer::Predictor predict(*model, [&](const plan::Inputs& in) { return (*model)(in["image"]); });
  EXPECT_EQ(predict(normal({2, 3, 8, 6})).shape(), (Shape{2, 3}));
}

// Writes what `model` makes of an input "x" of this shape.
template <class Model>
void write_graph(const std::string& path, const Shape& shape, const Model& model, const onnx::ExportSource& source) {
  Graph graph(Mode::Eval, DType::F32);
  const Value y = model(graph.input("x", {shape, DType::F32}));
  std::ofstream(path, std::ios::binary) << onnx::export_graph(graph, y, "y", source);
}

// The same for the model of a file.
void write_again(const std::string& from, const std::string& to, const Shape& shape) {
  const onnx::ImportedModel model(from);
  const std::vector<io::NamedTensor> weights = onnx::initial_weights(from);
  onnx::ExportSource source{.name = "model", .version = "test"};
  for (const NamedParameter& named : model.named_parameters()) source.names[named.parameter] = named.name;
  source.weights = [&](const std::string& name) {
    return std::ranges::find(weights, name, &io::NamedTensor::name)->tensor.clone();
  };
  write_graph(
      to, shape, [&](Value x) { return model(x); }, source);
}

Tensor computed_by_file(const std::string& path, const Tensor& x) {
  const onnx::ImportedModel model(path);
  infer::Predictor predict(model, [&](const plan::Inputs& in) { return model(in["x"]); }, {.input = "x"});
  return predict(x);
}

bool are_equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.data<float>(), b.data<float>());
}

// The tables with which an upsampling is written are weights of the file that is read again, under names that
// constants have too.
TEST(ImportedModel, IsWrittenAgainWithoutANameThatIsThereTwice) {
  const TemporaryDirectory folder;
  const std::string first = folder.path("first.onnx"), second = folder.path("second.onnx"),
                    third = folder.path("third.onnx");
  const Tensor image = normal({2, 3, 4, 4});
  write_graph(first, image.shape(),
              [](Value x) { return upsample(x, {.scale = {2}, .mode = Interpolation::Linear}) * 0.5 + 0.25; },
              {.name = "model", .version = "test"});
  write_again(first, second, image.shape());
  write_again(second, third, image.shape());
  const Tensor expected = computed_by_file(first, image);
  EXPECT_EQ(expected.shape(), (Shape{2, 3, 8, 8}));
  EXPECT_TRUE(are_equal(computed_by_file(second, image), expected));
  EXPECT_TRUE(are_equal(computed_by_file(third, image), expected));

  // A weight with the name that the first constant would get.
  onnx::Document document;
  document.input("x", {Shape{1, 4}, DType::F32});
  const std::string sum = document.add("Add", {"x", document.scalar(0.5, DType::F32)});
  document.initial("constant.2", normal({4}, 2));
  document.add("Mul", {sum, "constant.2"}, {}, "y");
  document.output("y", {Shape{1, 4}, DType::F32});
  std::ofstream(first, std::ios::binary) << document.finish("model", "test");
  write_again(first, second, {1, 4});
  const Tensor row = normal({1, 4}, 3);
  EXPECT_TRUE(are_equal(computed_by_file(second, row), computed_by_file(first, row)));
}

TEST(ImportedModel, GivesAWeightThatIsCalledAsAnInputIsANameOfItsOwn) {
  const TemporaryDirectory folder;
  Parameter one{.shape = Shape{4}, .initialize = {}}, two{.shape = Shape{4}, .initialize = {}};
  onnx::ExportSource source{.name = "model", .version = "test"};
  source.names = {{&one, "x"}, {&two, "x_weight"}};
  source.weights = [](const std::string& name) { return normal({4}, name == "x" ? 1 : 2); };
  Graph graph(Mode::Eval, DType::F32);
  const Value x = graph.input("x", {Shape{1, 4}, DType::F32});
  const Value y = x * graph.parameter(one) + graph.parameter(two);
  const std::string path = folder.path("model.onnx");
  std::ofstream(path, std::ios::binary) << onnx::export_graph(graph, y, "y", source);
  std::vector<std::string> names;
  for (const io::NamedTensor& named : onnx::initial_weights(path)) names.push_back(named.name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"x_weight", "x_weight_weight"}));
}

TEST(ImportedModel, KeepsTheTypesOfTheFilesTensors) {
  const TemporaryDirectory folder;
  const std::string path = folder.path("wide.onnx");
  const std::vector<double> third{1.0 / 3, 2.0 / 3};
  onnx::Document document;
  document.input("x", {Shape{1, 2}, DType::F64});
  document.initial("wide", Tensor::from<double>(Shape{2}, third));
  document.initial("narrow", normal({2}));
  document.add("Add", {document.add("Mul", {"x", "wide"}), "narrow"}, {}, "y");
  document.output("y", {Shape{1, 2}, DType::F64});
  std::ofstream(path, std::ios::binary) << document.finish("model", "test");
  const std::vector<io::NamedTensor> weights = onnx::initial_weights(path);
  ASSERT_EQ(weights.size(), 2u);
  for (const io::NamedTensor& named : weights) {
    EXPECT_EQ(named.tensor.dtype(), named.name == "wide" ? DType::F64 : DType::F32) << named.name;
    if (named.name == "wide") {
      EXPECT_TRUE(std::ranges::equal(named.tensor.data<double>(), third));
    }
  }
}

TEST(ImportedModel, RefusesFilesThatAreDamaged) {
  const TemporaryDirectory folder;
  const auto model = models::build_model("toy", 7, {3, 32, 32});
  const std::string path = write_model(folder, *model, {3, 32, 32}, 1, weights_of(*model, {3, 32, 32}));
  std::string bytes;
  {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    bytes = text.str();
  }
  const std::string other = folder.path("other.onnx");
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{40}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(other, std::ios::binary) << bytes.substr(0, size);
    const std::string message = error_of([&] { onnx::ImportedModel{other}; });
    EXPECT_TRUE(has(message, "[onnx]")) << size << ": " << message;
    EXPECT_TRUE(has(message, "other.onnx")) << message;
  }
  // Whichever byte of the structure is wrong, the file is read or refused; nothing else may happen.
  for (std::size_t at = 0; at < 600; at += 3) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    std::ofstream(other, std::ios::binary) << changed;
    error_of([&] { onnx::ImportedModel{other}; });
  }
  EXPECT_EQ(error_of([&] { onnx::ImportedModel{folder.path("none.onnx")}; }),
            "[onnx] " + folder.path("none.onnx") + ": there is no such file, expected a model of ONNX");
  EXPECT_TRUE(has(error_of([&] { models::build_model(path, 5); }), "has 7 classes, expected the 5 of the data"));
}

}  // namespace
}  // namespace lockstep
