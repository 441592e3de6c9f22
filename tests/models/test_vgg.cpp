#include "models/zoo/vgg.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"

namespace lockstep {
namespace {

// torchvision's state_dict(): name and shape per line, in its order; made with torchvision 0.14.
constexpr const char* kVgg11BnState = R"(features.0.weight (64, 3, 3, 3)
features.0.bias (64)
features.1.weight (64)
features.1.bias (64)
features.1.running_mean (64)
features.1.running_var (64)
features.1.num_batches_tracked ()
features.4.weight (128, 64, 3, 3)
features.4.bias (128)
features.5.weight (128)
features.5.bias (128)
features.5.running_mean (128)
features.5.running_var (128)
features.5.num_batches_tracked ()
features.8.weight (256, 128, 3, 3)
features.8.bias (256)
features.9.weight (256)
features.9.bias (256)
features.9.running_mean (256)
features.9.running_var (256)
features.9.num_batches_tracked ()
features.11.weight (256, 256, 3, 3)
features.11.bias (256)
features.12.weight (256)
features.12.bias (256)
features.12.running_mean (256)
features.12.running_var (256)
features.12.num_batches_tracked ()
features.15.weight (512, 256, 3, 3)
features.15.bias (512)
features.16.weight (512)
features.16.bias (512)
features.16.running_mean (512)
features.16.running_var (512)
features.16.num_batches_tracked ()
features.18.weight (512, 512, 3, 3)
features.18.bias (512)
features.19.weight (512)
features.19.bias (512)
features.19.running_mean (512)
features.19.running_var (512)
features.19.num_batches_tracked ()
features.22.weight (512, 512, 3, 3)
features.22.bias (512)
features.23.weight (512)
features.23.bias (512)
features.23.running_mean (512)
features.23.running_var (512)
features.23.num_batches_tracked ()
features.25.weight (512, 512, 3, 3)
features.25.bias (512)
features.26.weight (512)
features.26.bias (512)
features.26.running_mean (512)
features.26.running_var (512)
features.26.num_batches_tracked ()
classifier.0.weight (4096, 25088)
classifier.0.bias (4096)
classifier.3.weight (4096, 4096)
classifier.3.bias (4096)
classifier.6.weight (1000, 4096)
classifier.6.bias (1000)
)";
constexpr const char* kVgg16State = R"(features.0.weight (64, 3, 3, 3)
features.0.bias (64)
features.2.weight (64, 64, 3, 3)
features.2.bias (64)
features.5.weight (128, 64, 3, 3)
features.5.bias (128)
features.7.weight (128, 128, 3, 3)
features.7.bias (128)
features.10.weight (256, 128, 3, 3)
features.10.bias (256)
features.12.weight (256, 256, 3, 3)
features.12.bias (256)
features.14.weight (256, 256, 3, 3)
features.14.bias (256)
features.17.weight (512, 256, 3, 3)
features.17.bias (512)
features.19.weight (512, 512, 3, 3)
features.19.bias (512)
features.21.weight (512, 512, 3, 3)
features.21.bias (512)
features.24.weight (512, 512, 3, 3)
features.24.bias (512)
features.26.weight (512, 512, 3, 3)
features.26.bias (512)
features.28.weight (512, 512, 3, 3)
features.28.bias (512)
classifier.0.weight (4096, 25088)
classifier.0.bias (4096)
classifier.3.weight (4096, 4096)
classifier.3.bias (4096)
classifier.6.weight (1000, 4096)
classifier.6.bias (1000)
)";

std::string state_of(const models::Vgg& model) {
  std::string text;
  for (const NamedParameter& p : model.named_parameters()) text += p.name + " " + p.parameter->shape.str() + "\n";
  return text;
}

struct KnownVgg {
  int depth;
  bool norms;
  std::int64_t parameters;  // that are trained
  std::size_t state;        // keys of the state dict
};

class TorchvisionVgg : public testing::TestWithParam<KnownVgg> {};

TEST_P(TorchvisionVgg, HasItsSize) {
  const models::Vgg model(models::vgg_config(GetParam().depth, GetParam().norms));
  std::int64_t parameters = 0;
  for (const NamedParameter& p : model.named_parameters()) {
    if (p.parameter->role != Role::Buffer) parameters += p.parameter->shape.elements();
  }
  EXPECT_EQ(parameters, GetParam().parameters);
  EXPECT_EQ(model.named_parameters().size(), GetParam().state);
}

INSTANTIATE_TEST_SUITE_P(Depths, TorchvisionVgg,
                         testing::Values(KnownVgg{11, false, 132863336, 22}, KnownVgg{11, true, 132868840, 62},
                                         KnownVgg{13, false, 133047848, 26}, KnownVgg{13, true, 133053736, 76},
                                         KnownVgg{16, false, 138357544, 32}, KnownVgg{16, true, 138365992, 97},
                                         KnownVgg{19, false, 143667240, 38}, KnownVgg{19, true, 143678248, 118}));

TEST(Vgg, HasTorchvisionsStateInItsOrder) {
  EXPECT_EQ(state_of(models::Vgg(models::vgg_config(11, true))), kVgg11BnState);
  EXPECT_EQ(state_of(models::Vgg(models::vgg_config(16))), kVgg16State);
}

TEST(Vgg, SizesItsFirstLinearLayerByTheImage) {
  models::VggConfig config = models::vgg_config(11);
  config.image = {1, 64, 96};
  config.classes = 7;
  const models::Vgg model(config);
  Graph graph(Mode::Eval, DType::F32);
  EXPECT_EQ(model(graph.input("image", {{2, 1, 64, 96}, DType::F32})).shape(), (Shape{2, 7}));
  EXPECT_NE(state_of(model).find("classifier.0.weight (4096, 3072)\n"), std::string::npos);  // 512 x 2 x 3
}

TEST(Vgg, WhatItCannotBeIsNamed) {
  const auto message = [](auto make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([] { models::vgg_config(12); }), "[vgg] there is no depth 12; depths: 11, 13, 16, 19");
  EXPECT_EQ(message([] {
              models::Vgg({.image = {3, 28, 28}});
            }),
            "[vgg] images are (3, 28, 28), expected (channels, height, width) of at least 32x32");
}

}  // namespace
}  // namespace lockstep
