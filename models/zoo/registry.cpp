#include "models/zoo/registry.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "lockstep/core/error.h"
#include "models/zoo/densenet.h"
#include "models/zoo/lenet.h"
#include "models/zoo/mlp.h"
#include "models/zoo/mnist_convnet.h"
#include "models/zoo/mobilenet.h"
#include "models/zoo/onnx_classifier.h"
#include "models/zoo/resnet.h"
#include "models/zoo/vgg.h"
#include "models/zoo/vit.h"

namespace lockstep::models {
namespace {

using Stem = ResNetConfig::Stem;

std::unique_ptr<Classifier> build_resnet(ResNetConfig config, std::int64_t classes, const Shape& image) {
  check(image.rank() == 3, "resnet", "images are {}, expected (channels, height, width)", image.str());
  config.in_channels = image[0];
  config.classes = classes;
  return std::make_unique<ResNet>(config);
}

ModelEntry resnet(ResNetConfig config, std::string name, std::string description) {
  if (config.stem == Stem::Cifar) config.classes = 10;
  return {.name = std::move(name),
          .description = std::move(description),
          .image = config.stem == Stem::ImageNet ? Shape{3, 224, 224} : Shape{3, 32, 32},
          .classes = config.classes,
          .build = [config](std::int64_t classes, const Shape& image) { return build_resnet(config, classes, image); }};
}

ResNetConfig grouped(int depth, std::int64_t groups, std::int64_t width_per_group) {
  ResNetConfig config = resnet_config(depth);
  config.groups = groups;
  config.width_per_group = width_per_group;
  return config;
}

ModelEntry mlp(std::string name, std::string description, Shape image, std::vector<std::int64_t> hidden) {
  return {.name = std::move(name),
          .description = std::move(description),
          .image = std::move(image),
          .classes = 10,
          .build = [hidden = std::move(hidden)](std::int64_t classes, const Shape& shape) {
            std::vector<std::int64_t> sizes{shape.elements()};
            sizes.insert(sizes.end(), hidden.begin(), hidden.end());
            sizes.push_back(classes);
            return std::make_unique<Mlp>(sizes);
          }};
}

std::vector<ModelEntry> make_table() {
  std::vector<ModelEntry> table;
  table.push_back({.name = "toy",
                   .description = "LeNet of PyTorch's CIFAR-10 tutorial",
                   .image = {3, 32, 32},
                   .classes = 10,
                   .build = [](std::int64_t classes, const Shape& image) {
                     return std::make_unique<LeNet>(LeNetConfig{.image = image, .classes = classes});
                   }});
  table.push_back(mlp("mlp", "three hidden layers of 1024, for benches", {256}, {1024, 1024, 1024}));
  table.push_back(mlp("mnist_mlp", "hidden layers of 256 and 128 on MNIST", {1, 28, 28}, {256, 128}));
  table.push_back({.name = "mnist_convnet",
                   .description = "PyTorch's MNIST example",
                   .image = {1, 28, 28},
                   .classes = 10,
                   .build = [](std::int64_t classes, const Shape& image) {
                     return std::make_unique<MnistConvNet>(MnistConvNetConfig{.image = image, .classes = classes});
                   }});
  for (const int depth : {18, 34, 50, 101, 152}) {
    table.push_back(
        resnet(resnet_config(depth), formatted("resnet{}", depth), formatted("torchvision's ResNet-{}", depth)));
  }
  for (const int depth : {18, 34, 50, 101, 152}) {
    table.push_back(resnet(resnet_config(depth, Stem::Cifar), formatted("resnet{}_cifar", depth),
                           formatted("ResNet-{} with a 3x3 stem and no pool, for 32x32 images", depth)));
  }
  for (const int depth : {20, 32, 44, 56, 110}) {
    table.push_back(resnet(resnet_config(depth), formatted("resnet{}", depth),
                           formatted("ResNet-{} for CIFAR, 16/32/64 channels (He et al. 2015, section 4.2)", depth)));
  }
  table.push_back(
      resnet(grouped(50, 32, 4), "resnext50_32x4d", "torchvision's ResNeXt-50: 32 groups, 4 channels in the first"));
  table.push_back(
      resnet(grouped(101, 32, 8), "resnext101_32x8d", "torchvision's ResNeXt-101: 32 groups, 8 channels in the first"));
  table.push_back(
      resnet(grouped(50, 1, 128), "wide_resnet50_2", "torchvision's ResNet-50 with bottlenecks of twice the width"));
  table.push_back(
      resnet(grouped(101, 1, 128), "wide_resnet101_2", "torchvision's ResNet-101 with bottlenecks of twice the width"));
  for (auto entries : {densenet_entries, mobilenet_entries, vgg_entries, vit_entries})
    std::ranges::move(entries(), std::back_inserter(table));
  return table;
}

}  // namespace

std::span<const ModelEntry> model_table() {
  static const std::vector<ModelEntry> table = make_table();
  return table;
}

namespace {

// The entry that a file makes of itself; its layers fix the number of classes.
ModelEntry entry_of_file(const std::string& name) {
  const auto model = std::make_shared<OnnxClassifier>(name);
  return {.name = name,
          .description = "a file of ONNX",
          .image = model->image(),
          .classes = model->classes(),
          .build = [name](std::int64_t classes, const Shape&) -> std::unique_ptr<Classifier> {
            auto built = std::make_unique<OnnxClassifier>(name);
            const std::int64_t own = built->classes();
            check(own == 0 || own == classes, "models", "{} has {} classes, expected the {} of the data", name, own,
                  classes);
            return built;
          }};
}

}  // namespace

ModelEntry find_model(std::string_view name) {
  if (is_model_file(name)) return entry_of_file(std::string(name));
  const std::span<const ModelEntry> table = model_table();
  const auto found = std::ranges::find(table, name, &ModelEntry::name);
  if (found == table.end()) {
    std::string names;
    for (const ModelEntry& e : table) names += (names.empty() ? "" : ", ") + e.name;
    fail("models", "there is no model '{}'; models: {}, or a file that ends in .onnx", name, names);
  }
  return *found;
}

std::unique_ptr<Classifier> build_model(std::string_view name, std::int64_t classes, const Shape& image) {
  const ModelEntry entry = find_model(name);
  check(classes >= 0, "models", "{}: {} classes, expected at least 1", name, classes);
  for (const std::int64_t d : image.dims())
    check(d > 0, "models", "{}: images are {}, expected positive sizes", name, image.str());
  const Shape& sample = image.rank() == 0 ? entry.image : image;
  check(sample.rank() > 0, "models",
        "{}: the input has sizes that the file leaves open, expected --shape or data that say them", name);
  return entry.build(classes == 0 ? entry.classes : classes, sample);
}

}  // namespace lockstep::models
