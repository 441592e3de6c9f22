// Trains residual networks: torchvision's for large images, the original paper's for small ones.
#include "data/datasets/catalogue.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/resnet.h"

using namespace lockstep;

namespace {

enum class StemOption : std::uint8_t { Auto, ImageNet, Cifar };

models::ResNetConfig config_of(int depth, StemOption stem) {
  using Stem = models::ResNetConfig::Stem;
  if (stem == StemOption::Auto) return models::resnet_config(depth);
  return models::resnet_config(depth, stem == StemOption::Cifar ? Stem::Cifar : Stem::ImageNet);
}

}  // namespace

template <>
struct lockstep::train::Choices<StemOption> {
  static constexpr std::array kAll{NamedValue{StemOption::Auto, "auto"}, NamedValue{StemOption::ImageNet, "imagenet"},
                                   NamedValue{StemOption::Cifar, "cifar"}};
};

int main(int argc, char** argv) {
  train::Program program("train_resnet", "Trains residual networks (He et al. 2015).",
                         {.dataset = {.name = "cifar10", .augment = true},
                          .epochs = 30,
                          .batch_size = 128,
                          .rate = {.warmup_epochs = 1},
                          .trainer = {.update = {.weight_decay = 5e-4}}},
                         datasets::catalogue());
  int depth = 20;
  StemOption stem = StemOption::Auto;
  program.option("depth", depth,
                 "18, 34, 50, 101, 152 as torchvision; 20, 32, 44, 56, 110 for small images (16, 32, 64 channels)");
  program.option("stem", stem,
                 "first layers: imagenet (7x7 stride 2, pool) or cifar (3x3), for depths as torchvision; those for "
                 "small images have cifar's alone; auto: the depth's own, imagenet or cifar");
  program.check([&] { config_of(depth, stem); });
  return program.run(argc, argv, [&](train::Session& session) {
    const data::RunData& data = session.data();
    models::ResNetConfig config = config_of(depth, stem);
    config.in_channels = data.image_shape()[0];
    config.classes = data.classes();
    models::ResNet network(config);
    train::Trainer& trainer = session.build(network, models::classify(network, session.options().label_smoothing));

    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
