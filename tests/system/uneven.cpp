// A program of a user's own, without a Session, whose ranks make different numbers of calls:
//   uneven guarded step 5,6 FOLDER [RANKS]
// is one whose rank 0 makes 5 steps of a Trainer and whose rank 1 makes 6; of `crossed 0,1` rank 0 makes a step while
// rank 1 evaluates, before a watchdog's eyes. Of `step,state` it makes the calls of the one kind and then of the other.
// FOLDER tells its processes from others. With RANKS each node has so many ranks, or so it seems to them.
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/parallel/exchange/allreduce.h"
#include "lockstep/train/monitor/watchdog.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"
#include "models/zoo/classify.h"
#include "models/zoo/mlp.h"

using namespace lockstep;

namespace {

std::unique_ptr<data::TensorDataset> make_dataset() {
  constexpr std::int64_t kSamples = 480;
  Tensor images(Shape{kSamples, 4}, DType::F32), labels(Shape{kSamples}, DType::I32);
  for (std::size_t i = 0; i < images.data<float>().size(); ++i)
    images.data<float>()[i] = static_cast<float>(i % 7) * 0.125F;
  for (std::size_t i = 0; i < labels.data<std::int32_t>().size(); ++i)
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 2);
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"image", std::move(images)});
  tensors.push_back({"label", std::move(labels)});
  return std::make_unique<data::TensorDataset>(std::move(tensors), 2);
}

void train(const comm::Communicator& comm, const std::string& what, int count) {
  const auto dataset = make_dataset();
  const models::Mlp network(std::vector<std::int64_t>{4, 8, 2});
  const std::vector<data::Field> fields = {{"image", {4}, DType::F32}, {"label", {}, DType::I32}};
  train::TrainerOptions options{.global_batch = 48, .rule = optim::sgd({.momentum = 0.9})};
  options.parallel.share_weights = what != "apart";
  options.parallel.overlap =
      what == "thread" ? train::ParallelOptions::Overlap::Thread : train::ParallelOptions::Overlap::Auto;
  Heartbeat heartbeat;
  options.heartbeat = &heartbeat;
  std::optional<train::Watchdog> watchdog;
  if (what == "crossed") watchdog.emplace(comm, heartbeat, train::WatchdogOptions{.stall = 2, .abort = 8});
  train::Trainer trainer(comm, network, models::classify(network), fields, options);
  data::Loader loader(*dataset, trainer.sampler(*dataset), {}, {.threads = 0, .floats = DType::F32});
  const bool steps = what == "step" || what == "apart" || what == "thread";
  if (!steps) trainer.step(loader.next(), 0.1);
  if (what == "crossed" && count == 0) trainer.step(loader.next(), 0.1);
  for (int i = 0; i < count; ++i) {
    if (steps) trainer.step(loader.next(), 0.1);
    if (what == "evaluate" || what == "crossed") trainer.evaluate(loader);
    if (what == "state") trainer.state();
    if (what == "gradient") trainer.gradient("0.weight");
    if (what == "hashes") trainer.state_hashes();
  }
}

void reduce(const comm::Communicator& comm, std::int64_t length, int count) {
  parallel::Allreduce engine(comm, {});
  std::vector<float> data(static_cast<std::size_t>(length), 1.0F);
  for (int i = 0; i < count; ++i) engine.allreduce(comm::Buffer(std::span(data)), comm::ReduceOp::Sum);
}

std::vector<std::string> parts_of(const std::string& list) {
  std::istringstream text(list);
  std::vector<std::string> parts;
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

std::string node_of(int rank, const std::string& ranks) {
  return ranks.empty() ? "" : std::to_string(rank / std::stoi(ranks));
}

void run(const std::string& kinds, const std::string& counts, const std::string& ranks_of_node) {
  const comm::Environment mpi;
  const comm::Communicator world =
      comm::Communicator::world({.sharing_domain = node_of(comm::Environment::world_rank(), ranks_of_node)});
  const int count = std::stoi(parts_of(counts).at(static_cast<std::size_t>(world.rank())));
  for (const std::string& what : parts_of(kinds)) {
    if (what == "short" || what == "long") {
      reduce(world, what == "short" ? 8 : 1 << 20, count);
    } else {
      train(world, what, count);
    }
    std::printf("rank %d made %d of %s\n", world.rank(), count, what.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string way = argv[1], ranks_of_node = argc > 5 ? argv[5] : "";
  if (way == "guarded") return train::guard_main([&] { run(argv[2], argv[3], ranks_of_node); });
  if (way == "bare") {
    run(argv[2], argv[3], ranks_of_node);
    return 0;
  }
  try {
    run(argv[2], argv[3], ranks_of_node);
  } catch (const std::exception& error) {  // all that MPI still holds goes before this line
    std::fprintf(stderr, "system_uneven: %s\n", error.what());
    return 3;
  }
  return 0;
}
