// Trains the LeNet of PyTorch's CIFAR-10 tutorial.
#include "data/datasets/catalogue.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/lenet.h"

using namespace lockstep;

int main(int argc, char** argv) {
  train::Program program(
      "train_toy", "Trains a small convolutional network (conv 3-6-5, conv 6-16-5, 400-120-84-classes).",
      {.dataset = {.name = "cifar10"}, .epochs = 10, .batch_size = 16, .rate = {.peak = 0.01}}, datasets::catalogue());
  return program.run(argc, argv, [](train::Session& session) {
    const data::RunData& data = session.data();
    models::LeNet network({.image = data.image_shape(), .classes = data.classes()});
    train::Trainer& trainer = session.build(network, models::classify(network, session.options().label_smoothing));

    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
