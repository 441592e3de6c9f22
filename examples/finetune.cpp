// Fine-tuning: a network trained on ten digits learns to tell even from odd. The head is new, the layer below it
// follows at a tenth of the rate, and all others stay as they are. Runs on one rank, or under mpirun on several.
#include <cstdio>

#include "data/datasets/digits.h"
#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/data/loader.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"
#include "models/zoo/classify.h"
#include "models/zoo/lenet.h"

using namespace lockstep;

const std::vector<data::Field> kFields = {{"image", {1, 28, 28}, DType::F32}, {"label", {}, DType::I32}};
const data::Transforms kNormalise = {
    std::make_shared<data::ImageTransform>(data::ImageOptions{.mean = {0.2f}, .stddev = {0.3f}})};

data::ImageDataset digits(data::Split split, std::int64_t size, bool even_or_odd) {
  data::Images images = datasets::make_digits({.split = split, .size = size})->images();
  if (even_or_odd) {
    for (std::int32_t& label : images.labels) label %= 2;
    images.classes = 2;
  }
  return data::ImageDataset(std::move(images));
}

double train_and_evaluate(train::Trainer& trainer, bool even_or_odd, int epochs, double rate) {
  const data::ImageDataset training = digits(data::Split::Train, 6000, even_or_odd);
  const data::ImageDataset unseen = digits(data::Split::Eval, 1000, even_or_odd);
  data::Loader loader(training, trainer.sampler(training), kNormalise);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const data::Batch& batch : loader.epoch()) trainer.step(batch, rate);
  }
  data::Loader evaluation(unseen, trainer.sampler(unseen, {.shuffle = false}), kNormalise);
  return trainer.evaluate(evaluation).metric("accuracy").value_or(0);
}

void pretrain(const comm::Communicator& comm, const char* file) {
  models::LeNet network({.image = {1, 28, 28}, .classes = 10});
  train::Trainer trainer(comm, network, models::classify(network), kFields,
                         {.global_batch = 32, .rule = optim::sgd({.momentum = 0.9})});
  const double accuracy = train_and_evaluate(trainer, false, 3, 0.03);
  if (!comm.is_root()) return;
  std::printf("ten digits: %.1f%%\n", 100 * accuracy);
  checkpoint::save_weights(file, checkpoint::weights(trainer.model().parameters()));
}

double finetune(const comm::Communicator& comm, const char* file) {
  models::LeNet network({.image = {1, 28, 28}, .classes = 2});
  network.set_trainable(false);
  network.part("fc2").set_trainable(true);
  network.part("fc3").set_trainable(true);
  train::Trainer trainer(comm, network, models::classify(network), kFields,
                         {.global_batch = 32,
                          .rule = optim::sgd({.momentum = 0.9}),
                          .update = {.groups = {{.pattern = "fc2.*", .rate_scale = 0.1}}}});
  const checkpoint::LoadReport report = trainer.load_weights(file, {.strict = false});  // all but fc3, of another shape
  if (comm.is_root()) std::printf("%s\n", report.str().c_str());
  return train_and_evaluate(trainer, true, 2, 0.03);
}

int main(int argc, char** argv) {
  return train::guard_main([&] {  // an error ends all ranks, with one message
    const comm::Environment mpi;
    const comm::Communicator world = comm::Communicator::world();
    const char* file = argc > 1 ? argv[1] : "digits.h5";
    pretrain(world, file);
    const double accuracy = finetune(world, file);
    if (world.is_root()) std::printf("even or odd: %.1f%%\n", 100 * accuracy);
    return accuracy > 0.9 ? 0 : 1;
  });
}
