// A small model of clicks with sparse tables, and runs of it, for the tests of tables.
#pragma once

#include <algorithm>
#include <map>

#include "lockstep/io/tensor_source.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/reshape.h"
#include "tests/mpi/training.h"

namespace lockstep::test {

using comm::Communicator;
using optim::RowRule;

inline constexpr std::int64_t kSamples = 70, kWords = 3000, kItems = 40, kWidth = 6, kIds = 3, kBag = 5;

// Numbers of which small ones are frequent; sample 7 has the last row.
inline std::unique_ptr<data::TensorDataset> make_clicks() {
  Tensor words(Shape{kSamples, kIds}, DType::I32), items(Shape{kSamples, kBag}, DType::I64);
  Tensor counts(Shape{kSamples}, DType::I32), label(Shape{kSamples, 1}, DType::F32);
  RandomStream random(3, 0);
  for (std::int32_t& id : words.data<std::int32_t>()) {
    const double u = random.uniform();
    id = static_cast<std::int32_t>(u * u * u * kWords);
  }
  words.data<std::int32_t>()[7 * kIds] = kWords - 1;
  for (std::int64_t& id : items.data<std::int64_t>()) id = static_cast<std::int64_t>(random.below(kItems));
  for (std::int32_t& count : counts.data<std::int32_t>()) count = static_cast<std::int32_t>(random.below(kBag + 1));
  for (float& y : label.data<float>()) y = static_cast<float>(random.normal());
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"words", std::move(words)});
  tensors.push_back({"items", std::move(items)});
  tensors.push_back({"counts", std::move(counts)});
  tensors.push_back({"label", std::move(label)});
  return std::make_unique<data::TensorDataset>(std::move(tensors));
}

// A table of words used twice, and two bags over one tied table of items where it is sparse.
struct Clicks : nn::Module {
  explicit Clicks(bool is_sparse) : sparse(is_sparse) {}
  bool sparse;
  nn::Child<nn::Embedding> words{this, "words", {.num_embeddings = kWords, .embedding_dim = kWidth, .sparse = sparse}};
  nn::Child<nn::Embedding> items{
      this, "items", {.num_embeddings = kItems, .embedding_dim = kWidth, .padding_idx = 0, .sparse = true}};
  nn::Child<nn::EmbeddingBag> bag{this, "bag",
                                  nn::EmbeddingBagConfig{.num_embeddings = kItems,
                                                         .embedding_dim = kWidth,
                                                         .mode = BagMode::Mean,
                                                         .padding_idx = 0,
                                                         .tied = &items.table()}};
  nn::Child<nn::Linear> out{this, "out", {.in = (2 * kIds + 2) * kWidth, .out = 1}};

  Value score(const plan::Inputs& in) const {
    const Value once = flatten(words(in["words"])), again = flatten(words(in["words"]));
    const Value by_id = bag(in["items"]), by_count = bag(in["items"], in["counts"]);
    return out(concat({once, again * again, by_id, by_count}, 1));
  }
  plan::Traced trace(const plan::Inputs& in) const {
    const Value y = score(in);
    return {.loss = mean_squared_error(y, in["label"]), .prediction = y};
  }
};

struct ClickTask {
  std::int64_t steps = 5;
  bool sparse = true, shard = false;
  RowRule rule = RowRule::Sgd;
  double clip = 0, clip_value = 0;
  std::int64_t accumulate = 1, global_batch = 32;
  double decay = 0, rate = 0.05;
  bool ahead = false;  // the ids of a batch are announced a step before
  Heartbeat* heartbeat = nullptr;
  parallel::TableOptions tables{};
  std::string name() const {
    return formatted("{} {} shard {} clip {} by value {} accumulate {} ahead {} placement {} hot rows {} exchange {}",
                     optim::name_of(rule), sparse ? "sparse" : "dense", shard, clip, clip_value, accumulate, ahead,
                     static_cast<int>(tables.placement), tables.hot_rows, static_cast<int>(tables.exchange));
  }
};

struct ClickRun {
  std::unique_ptr<data::TensorDataset> dataset = make_clicks();
  Clicks network;
  std::unique_ptr<data::Loader> loader;
  std::unique_ptr<train::Trainer> trainer;
  double rate;
  bool ahead;
  std::vector<double> losses{};

  ClickRun(const Communicator& comm, const ClickTask& task) : network(task.sparse), rate(task.rate), ahead(task.ahead) {
    const parallel::WorldLayout where(comm.rank(), comm.size(), 4);
    const data::DistributedSampler sampler({.size = dataset->size(),
                                            .global_batch = task.global_batch,
                                            .shards = 4,
                                            .my_shards = where.my_shards(),
                                            .seed = 5});
    loader = std::make_unique<data::Loader>(*dataset, sampler, data::Transforms{}, data::LoaderOptions{.threads = 0});
    train::TrainerOptions options{.global_batch = task.global_batch,
                                  .shards = 4,
                                  .accumulate = task.accumulate,
                                  .seed = 5,
                                  .update = {.clip_value = task.clip_value},
                                  .tables = task.tables,
                                  .clip_norm = task.clip,
                                  .heartbeat = task.heartbeat};
    options.tables.shard = task.shard;
    options.tables.rules.all = {.rule = task.rule, .weight_decay = task.decay, .l1 = 0.01, .l2 = 0.1};
    trainer = std::make_unique<train::Trainer>(
        comm, network, [this](const plan::Inputs& in) { return network.trace(in); }, loader->fields(), options);
  }
  void train(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) {
      data::Batch batch = loader->next();
      if (ahead) trainer->announce(*loader->peek());
      losses.push_back(trainer->step(batch, rate).loss);
      loader->recycle(std::move(batch));
    }
  }
};

inline std::unique_ptr<ClickRun> run_clicks(const Communicator& comm, const ClickTask& task) {
  auto run = std::make_unique<ClickRun>(comm, task);
  run->train(task.steps);
  return run;
}

// By name, as dense parameters and tables come in different orders. Whole on rank 0.
inline std::map<std::string, std::vector<float>> tensors_of(train::Trainer& trainer) {
  std::map<std::string, std::vector<float>> all;
  for (const io::NamedTensor& t : trainer.state()) {
    if (t.tensor.dtype() == DType::F32)
      all[t.name].assign(t.tensor.data<float>().begin(), t.tensor.data<float>().end());
  }
  return all;
}

inline void expect_alike(ClickRun& a, ClickRun& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;
  const auto left = tensors_of(*a.trainer), right = tensors_of(*b.trainer);
  if (!world().is_root()) return;
  ASSERT_EQ(left.size(), right.size()) << what;
  for (const auto& [name, values] : left) {
    ASSERT_TRUE(right.contains(name)) << what << ": " << name;
    const auto [at, other] = std::ranges::mismatch(values, right.at(name));
    EXPECT_EQ(at, values.end()) << what << ": " << name << "[" << at - values.begin() << "]: " << *at << ", " << *other;
  }
}

}  // namespace lockstep::test
