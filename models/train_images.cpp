// Trains any classifier of the zoo, or of a file of ONNX, on images: files in folders, packed records, CIFAR, MNIST,
// NumPy's arrays.
#include <string>
#include <vector>

#include "data/datasets/catalogue.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"

using namespace lockstep;

namespace {

constexpr std::int64_t kTop = 5;  // as torchvision's reference script

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const models::ModelEntry& entry : models::model_table()) names.push_back(entry.name);
  names.emplace_back("*.onnx");
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("train_images",
                         "Trains a classifier of the zoo, or of a file of ONNX, on images of your files.",
                         {.dataset = {.name = "folder", .augment = true},
                          .epochs = 90,
                          .batch_size = 32,
                          .rate = {.warmup_epochs = 5},
                          .trainer = {.update = {.weight_decay = 1e-4}}},
                         datasets::image_catalogue());
  std::string model = "resnet18";
  program.option("model", model, "the network, as `lockstep models` describes it, or a file of ONNX", model_names());
  return program.run(argc, argv, [&](train::Session& session) {
    const data::RunData& data = session.data();
    const auto network = models::build_model(model, data.classes(), data.image_shape());
    train::Trainer& trainer =
        session.build(*network, models::classify(*network, {.label_smoothing = session.options().label_smoothing,
                                                            .shares = data.epoch.mix != nullptr,
                                                            .top = data.classes() > kTop ? kTop : 0}));

    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
