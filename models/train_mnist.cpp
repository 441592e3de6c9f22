// Trains a multi-layer perceptron or a convolutional network on images of handwritten digits.
#include <optional>

#include "data/datasets/catalogue.h"
#include "lockstep/nn/layers.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"

using namespace lockstep;

int main(int argc, char** argv) {
  train::Program program("train_mnist", "Trains a small network on handwritten digits.",
                         {.dataset = {.name = "digits"}, .epochs = 3, .batch_size = 64, .rate = {.peak = 0.05}},
                         datasets::catalogue());
  std::string model = "convnet";
  program.option("model", model, "mlp (784-256-128) or convnet (the one of PyTorch's MNIST example)",
                 {"mlp", "convnet"});
  bool unused_layer = false;
  program.option("unused-layer", unused_layer, "add a linear layer that the network never calls, to try out --unused");
  return program.run(argc, argv, [&](train::Session& session) {
    const data::RunData& data = session.data();
    const auto network = models::build_model("mnist_" + model, data.classes(), data.image_shape());
    std::optional<nn::Child<nn::Linear>> unused;
    if (unused_layer) unused.emplace(network.get(), "unused", nn::LinearConfig{.in = 128, .out = 64});
    train::Trainer& trainer = session.build(*network, models::classify(*network, session.options().label_smoothing));

    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
