// The C++ that docs/pytorch.md shows: weights of torchvision's ResNet-50 are predicted with, and trained on, with the
// same head and with another. Here resnet50.h5 has initial values.
#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"
#include "models/zoo/classify.h"
#include "models/zoo/resnet.h"

using namespace lockstep;

namespace {

void write_weights() {
  models::ResNet network(models::resnet_config(50));
  infer::Predictor predict(network, [&](const plan::Inputs& in) { return network(in["image"]); });
  checkpoint::save_weights("resnet50.h5", checkpoint::weights(predict.parameters()));
}

void predict(const Tensor& images) {
  models::ResNet network(models::resnet_config(50));
  infer::Predictor predict(network, [&](const plan::Inputs& in) { return network(in["image"]); });
  predict.load("resnet50.h5");
  const Tensor logits = predict(images);  // (samples, 3, 224, 224), normalised as torchvision does
  check(logits.shape() == Shape{1, 1000}, "infer", "logits are {}", logits.shape().str());
}

const std::vector<data::Field> kFields = {{"image", {3, 64, 64}, DType::F32}, {"label", {}, DType::I32}};

void train_with_the_same_head() {
  models::ResNet network(models::resnet_config(50));
  train::Trainer trainer(comm::Communicator::self(), network, models::classify(network), kFields, {.global_batch = 1});
  trainer.load_weights("resnet50.h5");  // strict
}

void train_with_another_head() {
  models::ResNetConfig config = models::resnet_config(50);
  config.classes = 7;
  models::ResNet network(config);
  train::Trainer trainer(comm::Communicator::self(), network, models::classify(network), kFields, {.global_batch = 1});
  const checkpoint::LoadReport report = trainer.load_weights("resnet50.h5", {.strict = false});  // all but fc
  check(report.mismatched.size() == 2, "train", "{}", report.str());
}

}  // namespace

int main() {
  return train::guard_main([] {
    const comm::Environment mpi;
    write_weights();
    predict(Tensor(Shape{1, 3, 224, 224}, DType::F32));
    train_with_the_same_head();
    train_with_another_head();
  });
}
