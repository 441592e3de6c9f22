// For the tests of Trainer: small tasks with data in memory, trained on any communicator, and what is compared of two
// runs. A run on Communicator::self() inside the same test is the reference for the run on all ranks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "lockstep/train/step/trainer.h"
#include "models/zoo/classify.h"
#include "models/zoo/mlp.h"
#include "models/zoo/resnet.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {

using Samples = std::vector<std::int64_t>;

// Classes 0 to 4 with noisy images (1, side, side) around a centre each.
inline std::unique_ptr<data::TensorDataset> make_images(std::int64_t count, std::int64_t channels, std::int64_t side) {
  const std::int64_t pixels = channels * side * side;
  Tensor images(Shape{count, channels, side, side}, DType::F32), labels(Shape{count}, DType::I32);
  RandomStream centres(11, 0);
  std::vector<double> centre(static_cast<std::size_t>(5 * pixels));
  for (double& c : centre) c = centres.normal();
  for (std::int64_t i = 0; i < count; ++i) {
    RandomStream random(12, static_cast<std::uint64_t>(i));
    const auto label = static_cast<std::int32_t>(random.below(5));
    labels.data<std::int32_t>()[static_cast<std::size_t>(i)] = label;
    for (std::int64_t p = 0; p < pixels; ++p) {
      images.data<float>()[static_cast<std::size_t>(i * pixels + p)] =
          static_cast<float>(centre[static_cast<std::size_t>(label * pixels + p)] + 1.5 * random.normal());
    }
  }
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"image", std::move(images)});
  tensors.push_back({"label", std::move(labels)});
  return std::make_unique<data::TensorDataset>(std::move(tensors), 5);
}

class DropoutNet : public models::Classifier {
 public:
  explicit DropoutNet(double probability) : probability_(probability) {}
  Value operator()(Value x) const override { return out_(drop_(relu(in_(flatten(x))))); }

 private:
  double probability_;
  nn::Child<nn::Linear> in_{this, "in", {.in = 36, .out = 24}};
  nn::Child<nn::Dropout> drop_{this, "drop", probability_};
  nn::Child<nn::Linear> out_{this, "out", {.in = 24, .out = 5}};
};

inline std::unique_ptr<models::Classifier> make_mlp() {
  return std::make_unique<models::Mlp>(std::vector<std::int64_t>{36, 31, 17, 5});
}
inline std::unique_ptr<models::Classifier> make_resnet() {
  return std::make_unique<models::ResNet>(models::ResNetConfig{
      .blocks = {1, 1, 1}, .width = 8, .stem = models::ResNetConfig::Stem::Cifar, .in_channels = 3, .classes = 5});
}

struct Task {
  std::int64_t samples = 301, channels = 1, side = 6;
  std::int64_t steps = 6;
  double lr = 0.05;
  train::TrainerOptions options = {.global_batch = 128, .shards = 4, .seed = 5};
  std::function<std::unique_ptr<models::Classifier>()> network = make_mlp;
  std::function<plan::ModelFunction(const models::Classifier&)> model = [](const models::Classifier& n) {
    return models::classify(n);
  };
};

// Everything that a run of a task on a communicator needs, in the order of its construction.
struct Rig {
  std::unique_ptr<data::TensorDataset> dataset;
  std::unique_ptr<models::Classifier> network;
  std::unique_ptr<data::Loader> loader;
  std::unique_ptr<train::Trainer> trainer;
  double lr;
  std::vector<double> losses{};
  std::vector<Samples> samples{};  // by step, this rank's

  Rig(const comm::Communicator& comm, const Task& task)
      : dataset(make_images(task.samples, task.channels, task.side)), network(task.network()), lr(task.lr) {
    const parallel::WorldLayout where(comm.rank(), comm.size(), task.options.shards);
    const data::DistributedSampler sampler({.size = dataset->size(),
                                            .global_batch = task.options.global_batch,
                                            .shards = where.tree.shards(),
                                            .my_shards = where.my_shards(),
                                            .seed = task.options.seed});
    loader = std::make_unique<data::Loader>(*dataset, sampler, data::Transforms{},
                                            data::LoaderOptions{.threads = 0, .floats = task.options.precision});
    trainer = std::make_unique<train::Trainer>(comm, *network, task.model(*network), loader->fields(), task.options);
  }
  void train(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) {
      data::Batch batch = loader->next();
      samples.push_back(batch.step.samples);
      losses.push_back(trainer->step(batch, lr).loss);
      loader->recycle(std::move(batch));
    }
  }
};

inline std::unique_ptr<Rig> run_task(const comm::Communicator& comm, const Task& task) {
  auto rig = std::make_unique<Rig>(comm, task);
  rig->train(task.steps);
  return rig;
}

// The largest difference between two states, tensor by tensor; infinite where they are not alike.
inline double distance(train::Trainer& a, train::Trainer& b) {
  const auto left = a.state(), right = b.state();
  if (left.size() != right.size()) return INFINITY;
  double largest = 0;
  for (std::size_t t = 0; t < left.size(); ++t) {
    if (left[t].name != right[t].name || left[t].tensor.shape() != right[t].tensor.shape()) return INFINITY;
    if (left[t].tensor.dtype() == DType::I64) {
      if (left[t].tensor.data<std::int64_t>()[0] != right[t].tensor.data<std::int64_t>()[0]) return INFINITY;
      continue;
    }
    const Tensor x = left[t].tensor.to(DType::F64), y = right[t].tensor.to(DType::F64);
    for (std::size_t i = 0; i < x.data<double>().size(); ++i) {
      const double difference = std::abs(x.data<double>()[i] - y.data<double>()[i]);
      if (!(difference <= largest)) largest = difference;  // NaN too
    }
  }
  return largest;
}

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= largest)) largest = std::abs(a[i] - b[i]);
  }
  return largest;
}

inline void expect_same_bits(const Rig& a, const Rig& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;
  EXPECT_EQ(a.trainer->weights_hash(), b.trainer->weights_hash()) << what;
  EXPECT_EQ(distance(*a.trainer, *b.trainer), 0.0) << what;
}

}  // namespace lockstep::test
