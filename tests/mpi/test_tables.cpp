// Sparse tables: with plain SGD they train as dense parameters do, bit by bit; every rule gives the same bits at any
// number of ranks, replicated or sharded, with clipping, micro-batches and checkpoints; wrong ids are one clear error.
#include <algorithm>
#include <map>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/reshape.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using optim::RowRule;

constexpr std::int64_t kSamples = 70, kWords = 3000, kItems = 40, kWidth = 6, kIds = 3, kBag = 5;

// Numbers of which small ones are frequent; sample 7 has the last row.
std::unique_ptr<data::TensorDataset> make_clicks() {
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
  double clip = 0;
  std::int64_t accumulate = 1, global_batch = 32;
  double decay = 0, rate = 0.05;
  bool ahead = false;  // the ids of a batch are announced a step before
  parallel::TableOptions tables{};
  std::string name() const {
    return formatted("{} {} shard {} clip {} accumulate {} ahead {} placement {} hot rows {} exchange {}",
                     optim::name_of(rule), sparse ? "sparse" : "dense", shard, clip, accumulate, ahead,
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
                                  .tables = task.tables,
                                  .clip_norm = task.clip};
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

std::unique_ptr<ClickRun> run_clicks(const Communicator& comm, const ClickTask& task) {
  auto run = std::make_unique<ClickRun>(comm, task);
  run->train(task.steps);
  return run;
}

// By name, as dense parameters and tables come in different orders. Whole on rank 0.
std::map<std::string, std::vector<float>> tensors_of(train::Trainer& trainer) {
  std::map<std::string, std::vector<float>> all;
  for (const io::NamedTensor& t : trainer.state()) {
    if (t.tensor.dtype() == DType::F32)
      all[t.name].assign(t.tensor.data<float>().begin(), t.tensor.data<float>().end());
  }
  return all;
}

void expect_alike(ClickRun& a, ClickRun& b, const std::string& what) {
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

TEST(Tables, TrainWithSgdAsDenseParametersDo) {
  for (const std::int64_t accumulate : {1, 2}) {
    ClickTask task{.accumulate = accumulate};
    ClickRun sparse(Communicator::self(), task);
    task.sparse = false;
    ClickRun dense(Communicator::self(), task);
    dense.trainer->load(sparse.trainer->state(), 0, true);
    sparse.train(6);
    dense.train(6);
    expect_alike(sparse, dense, task.name());
    const auto values = tensors_of(*sparse.trainer);
    for (std::size_t i = 0; i < kWidth; ++i) EXPECT_EQ(values.at("model/items.weight")[i], 0) << "the padding row";
  }
}

TEST(Tables, OfEveryRuleHaveTheSameBitsAtAnyNumberOfRanks) {
  for (const RowRule rule : {RowRule::Sgd, RowRule::Adagrad, RowRule::AdagradRowwise, RowRule::Adam, RowRule::Ftrl}) {
    ClickTask task{.steps = 4, .rule = rule, .decay = rule == RowRule::Adam ? 0.01 : 0};
    const auto alone = run_clicks(Communicator::self(), task), together = run_clicks(world(), task);
    expect_alike(*alone, *together, task.name());
    task.shard = true;
    const auto sharded = run_clicks(world(), task);
    expect_alike(*alone, *sharded, task.name());
    EXPECT_EQ(alone->trainer->weights_hash(), sharded->trainer->weights_hash());
    EXPECT_NE(alone->losses.front(), alone->losses.back());
  }
}

// Ids that travel a step early, parts of tables, replicas of hot rows (which are chosen after eight steps), and blocks.
TEST(Tables, HaveTheSameBitsWhereverRowsLieAndHoweverTheyTravel) {
  using parallel::RowPlacement;
  using parallel::TableExchange;
  struct Form {
    RowRule rule;
    bool shard;
    parallel::TableOptions tables;
  };
  const std::vector<Form> forms{
      {RowRule::Adagrad, true, {.placement = RowPlacement::Hash, .hot_rows = 25}},
      {RowRule::Adam, true, {.placement = RowPlacement::Range, .hot_rows = 25, .exchange = TableExchange::Blocks}},
      {RowRule::Adam, false, {.exchange = TableExchange::Blocks}}};
  for (const Form& form : forms) {
    ClickTask task{.steps = 11, .rule = form.rule, .clip = 0.5, .rate = 0.02};
    const auto alone = run_clicks(Communicator::self(), task);
    task.shard = task.ahead = form.shard;
    task.tables = form.tables;
    expect_alike(*alone, *run_clicks(world(), task), task.name());
  }
  ClickTask task{.tables = {.hot_rows = 3}};
  const std::string error = error_of([&] { ClickRun(world(), task); });
  EXPECT_NE(error.find("3 hot rows of tables that are not sharded"), std::string::npos) << error;
}

// A batch that changes after its ids were announced is looked up all the same; another batch takes its place.
TEST(Tables, LookUpWhatTheBatchHasNotWhatWasAnnounced) {
  ClickTask task{.rule = RowRule::Adagrad};
  ClickRun alone(Communicator::self(), task);
  task.shard = true;
  ClickRun sharded(world(), task);
  for (ClickRun* run : {&alone, &sharded}) {
    for (int s = 0; s < 4; ++s) {
      data::Batch batch = run->loader->next(), early = run->loader->next();
      if (s % 2 == 0) {
        run->trainer->announce(early);
        run->losses.push_back(run->trainer->step(batch, 0.05).loss);
        for (std::int32_t& id : early.at("words").data<std::int32_t>()) id = (id + 7) % kWords;
        run->losses.push_back(run->trainer->step(early, 0.05).loss);
      } else {
        run->trainer->announce(batch);
        run->losses.push_back(run->trainer->step(batch, 0.05).loss);
      }
    }
  }
  expect_alike(alone, sharded, "batches that change");
}

TEST(Tables, MayBeWrittenBetweenStepsWithReplicas) {
  ClickTask task{.steps = 10, .shard = true, .rule = RowRule::Adagrad, .ahead = true, .tables = {.hot_rows = 20}};
  const auto run = run_clicks(world(), task);
  task.shard = false;
  task.tables = {};
  const auto alone = run_clicks(Communicator::self(), task);
  const std::vector<std::int64_t> rows{0, 1, 2, 3, 5, 8};
  for (ClickRun* one : {run.get(), alone.get()}) {
    one->trainer->reset_rows(one->network.words.table(), rows);
    one->train(2);
  }
  expect_alike(*alone, *run, task.name());
}

TEST(Tables, CountInTheNormOfClipping) {
  for (const std::int64_t accumulate : {1, 3}) {
    ClickTask task{.rule = RowRule::Adagrad, .clip = 0.3, .accumulate = accumulate};
    const auto alone = run_clicks(Communicator::self(), task), together = run_clicks(world(), task);
    expect_alike(*alone, *together, task.name());
    task.shard = true;
    expect_alike(*alone, *run_clicks(world(), task), task.name());
    ClickTask dense{.sparse = false, .clip = 0.3, .accumulate = accumulate},
        sparse{.clip = 0.3, .accumulate = accumulate};
    ClickRun a(Communicator::self(), sparse), b(Communicator::self(), dense);
    b.trainer->load(a.trainer->state(), 0, true);
    a.train(3);
    b.train(3);
    EXPECT_LT(distance(a.losses, b.losses), 1e-6);  // the norms add the same squares in other orders
  }
}

// A shard has no samples.
TEST(Tables, MayBeUnusedByARank) {
  for (const bool shard : {false, true}) {
    ClickTask task{.steps = 6, .shard = shard, .global_batch = 3, .rate = 0.005};
    const auto together = run_clicks(world(), task);
    task.shard = false;
    expect_alike(*run_clicks(Communicator::self(), task), *together, task.name());
  }
}

TEST(Tables, ResumeInAnotherFormAsIfNothingHadStopped) {
  ClickTask task{.rule = RowRule::Adam};
  ClickRun whole(world(), task), first(world(), task);
  whole.train(5);
  first.train(2);
  std::vector<io::NamedTensor> state = first.trainer->state();
  for (const bool shard : {true, false}) {
    task.shard = shard;
    ClickRun next(world(), task);
    next.trainer->load(io::source_of(state), "state", 2);
    for (int skipped = 0; skipped < 2; ++skipped) next.loader->recycle(next.loader->next());
    next.train(3);
    next.losses.insert(next.losses.begin(), first.losses.begin(), first.losses.end());
    expect_alike(whole, next, task.name());
    EXPECT_EQ(whole.trainer->state_hashes().back().hash, next.trainer->state_hashes().back().hash);
    state = next.trainer->state();
    if (shard) state = first.trainer->state();
  }
}

TEST(Tables, EvaluateOnAllRanks) {
  ClickTask task;
  double expected = 0;
  for (const bool shard : {false, true}) {
    task.shard = shard;
    ClickRun run(world(), task);
    run.train(2);
    data::Loader all(*run.dataset, run.trainer->sampler(*run.dataset, {.shuffle = false, .global_batch = 16}),
                     data::Transforms{}, data::LoaderOptions{.threads = 0});
    const train::Totals totals = run.trainer->evaluate(all);
    EXPECT_EQ(totals.samples, kSamples);
    EXPECT_EQ(totals.loss, shard ? expected : totals.loss);
    expected = totals.loss;
    run.train(1);
  }
}

TEST(Tables, AreReadByAPredictor) {
  ClickRun run(Communicator::self(), {});
  run.train(2);
  const data::Batch batch = run.loader->next();
  const Tensor expected = run.trainer->predict(batch);
  Clicks network(true);
  infer::Predictor predict(network, [&](const plan::Inputs& in) { return network.score(in); });
  const auto state = run.trainer->state();
  EXPECT_EQ(predict.load(state, {.prefix = "model/"}).loaded.size(), 4U);
  const Tensor y =
      predict({{"words", batch.at("words")}, {"items", batch.at("items")}, {"counts", batch.at("counts")}});
  EXPECT_TRUE(std::ranges::equal(y.data<float>(), expected.data<float>()));
  const std::vector<io::NamedTensor> none;
  EXPECT_THROW(predict.load(none), Error);
}

TEST(Tables, LoadWeightsFromAFile) {
  const SharedDirectory folder;
  const std::filesystem::path file = folder.path() / "weights.h5";
  ClickRun first(Communicator::self(), {});
  first.train(2);
  std::vector<io::NamedTensor> weights = first.trainer->state();
  for (io::NamedTensor& tensor : weights) tensor.name.erase(0, std::string("model/").size());
  if (world().is_root()) checkpoint::save_weights(file, weights);
  world().barrier();
  for (const bool shard : {false, true}) {
    ClickRun next(world(), {.shard = shard});
    EXPECT_TRUE(next.trainer->load_weights(file).complete());
    EXPECT_EQ(next.trainer->weights_hash(), first.trainer->weights_hash());
    EXPECT_THROW(next.trainer->load_weights(file, {.prefix = "other."}), Error);
  }
}

TEST(Tables, NameTheFieldAndTheSampleOfAWrongId) {
  ClickTask task;
  ClickRun run(Communicator::self(), task);
  data::Batch batch = run.loader->next();
  batch.at("words").data<std::int32_t>()[4] = kWords;
  const std::string error = error_of([&] { run.trainer->step(batch, 0.1); });
  for (const std::string_view part : {"words", "sample", "3000", "0 to 2999"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(Tables, RefuseWhatCannotBe) {
  Clicks network(true);
  EXPECT_THROW(network.words.weight(), Error);
  EXPECT_THROW(nn::Embedding({.num_embeddings = 4, .embedding_dim = 2, .sparse = true, .tied = &network.items.table()}),
               Error);
  EXPECT_EQ(nn::named_tables(network).size(), 2U);
  EXPECT_EQ(nn::named_tables(network)[1].name, "items.weight");
  EXPECT_THROW(network.words.table().bound(), Error);
  ClickRun run(Communicator::self(), {});
  const std::string error = error_of([&] {
    train::Trainer(Communicator::self(), run.network, [&](const plan::Inputs& in) { return run.network.trace(in); },
                   run.loader->fields(), {.global_batch = 4});
  });
  EXPECT_NE(error.find("one at a time"), std::string::npos) << error;
  EXPECT_THROW(run.trainer->gradient("words.weight"), Error);
}

}  // namespace
}  // namespace lockstep::test
