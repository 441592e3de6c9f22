// Sparse tables: with plain SGD they train as dense parameters do, bit by bit; every rule gives the same bits at any
// number of ranks, replicated or sharded, with clipping, micro-batches and checkpoints; wrong ids are one clear error.
#include <algorithm>
#include <map>

#include "lockstep/checkpoint/increment.h"
#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/train/state/table_state.h"
#include "tests/mpi/click_run.h"
#include "tests/temporary_directory.h"

namespace lockstep::test {
namespace {

TEST(Tables, TrainWithSgdAsDenseParametersDo) {
  for (const std::int64_t accumulate : {1, 2}) {
    ClickTask task{.clip_value = accumulate == 2 ? 0.02 : 0, .accumulate = accumulate};
    ClickRun sparse(Communicator::self(), task);
    task.sparse = false;
    ClickRun dense(Communicator::self(), task);
    dense.trainer->load(sparse.trainer->state(), 0, true);
    ClickRun free(Communicator::self(), {.accumulate = accumulate});
    free.train(6);
    sparse.train(6);
    EXPECT_EQ(sparse.losses == free.losses, task.clip_value == 0);
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
    ClickTask task{.steps = 11, .rule = form.rule, .clip = 0.5, .clip_value = 0.01, .rate = 0.02};
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

// A watchdog sees that ranks move while large tables are hashed.
TEST(Tables, BeatWhileTheyAreHashed) {
  for (const bool shard : {false, true}) {
    Heartbeat heartbeat;
    Heartbeat::Row row;
    heartbeat.attach(row);
    const auto run = run_clicks(world(), {.steps = 1, .shard = shard, .rule = RowRule::Adam, .heartbeat = &heartbeat});
    const std::uint64_t before = row.beats.load();
    EXPECT_EQ(run->trainer->state_hashes().size(), 2U + 6U);  // of a linear layer, and three of each table
    EXPECT_GE(row.beats.load() - before, 6U);
    const std::uint64_t again = row.beats.load();
    run->trainer->weights_hash();
    EXPECT_GE(row.beats.load() - again, 2U + 2U);
  }
}

TEST(Tables, SaveTheRowsThatChanged) {
  for (const bool shard : {false, true}) {
    ClickRun run(world(), {.shard = shard, .rule = RowRule::Adam, .tables = {.changes = true}});
    std::map<std::string, Tensor> base, changed;
    const auto save = [&](train::TableSave::Rows rows, std::map<std::string, Tensor>& to) {
      const auto copy = world().is_root() ? run.trainer->make_snapshot() : nullptr;
      to.clear();
      run.trainer->snapshot(copy.get(), {.rows = rows, .take = [&](io::NamedTensor tensor) {
                                           to[tensor.name] = std::move(tensor.tensor);
                                         }});
    };
    run.train(1);
    save(train::TableSave::Rows::AllAsBase, base);
    EXPECT_EQ(run.trainer->changed_bytes(), 0u);
    run.train(2);
    run.trainer->reset_rows(run.network.words.table(), std::vector<std::int64_t>{kWords - 2});
    const std::size_t bytes = run.trainer->changed_bytes();
    EXPECT_GT(bytes, 0u);
    EXPECT_LT(bytes, run.trainer->table_bytes() / 4);
    save(train::TableSave::Rows::Changed, changed);
    std::map<std::string, Tensor> now;
    save(train::TableSave::Rows::All, now);
    EXPECT_EQ(run.trainer->changed_bytes(), bytes) << "changes are counted from the base on";
    std::size_t saved = 0;
    for (auto& [name, all] : base) {
      const Tensor& rows = changed.at(std::string(checkpoint::kRowsPrefix) + name);
      const Tensor& values = changed.at(std::string(checkpoint::kValuesPrefix) + name);
      const std::size_t width = all.data<float>().size() / static_cast<std::size_t>(all.shape()[0]);
      saved += rows.bytes() + values.bytes();
      for (std::size_t i = 0; i < rows.data<std::int32_t>().size(); ++i) {
        const auto row = static_cast<std::size_t>(rows.data<std::int32_t>()[i]);
        std::copy_n(values.data<float>().data() + i * width, width, all.data<float>().data() + row * width);
      }
      EXPECT_TRUE(std::ranges::equal(all.data<float>(), now.at(name).data<float>())) << name << " shard " << shard;
    }
    EXPECT_EQ(saved, world().is_root() ? bytes : 0u);
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
  std::vector<io::NamedTensor> pieces;
  for (const std::int64_t first : {0, 1})
    pieces.push_back({formatted("words.weight/{:012}", first), Tensor({1, kWidth}, DType::F32)});
  const auto kept = predict.load(pieces, {.strict = false, .keep = {"words.weight"}});
  EXPECT_EQ(kept.skipped, std::vector<std::string>{"words.weight"});
  EXPECT_TRUE(kept.unexpected.empty());
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
  std::vector<io::NamedTensor> zeros;  // of all but one
  for (const auto& [name, tensor] : weights) {
    if (name != "out.bias") zeros.push_back({name, Tensor(tensor.shape(), tensor.dtype())});
  }
  if (world().is_root()) {
    checkpoint::save_weights(file, weights);
    checkpoint::save_weights(folder.path() / "incomplete.h5", zeros);
  }
  world().barrier();
  for (const bool shard : {false, true}) {
    ClickRun next(world(), {.shard = shard});
    EXPECT_TRUE(next.trainer->load_weights(file).complete());
    EXPECT_EQ(next.trainer->weights_hash(), first.trainer->weights_hash());
    const std::string other = error_of([&] { next.trainer->load_weights(file, {.prefix = "other."}); });
    EXPECT_NE(other.find("weights.h5: "), std::string::npos) << other;
    const std::string incomplete = error_of([&] { next.trainer->load_weights(folder.path() / "incomplete.h5"); });
    EXPECT_NE(incomplete.find("missing: out.bias"), std::string::npos) << incomplete;
    EXPECT_EQ(next.trainer->weights_hash(), first.trainer->weights_hash()) << "a load that throws changes nothing";
  }
}

TEST(Tables, StayAsTheyAreIfAStateDoesNotFit) {
  ClickRun run(world(), {});
  const std::uint64_t before = run.trainer->weights_hash();
  std::vector<io::NamedTensor> zeros;
  for (const auto& [name, tensor] : run.trainer->state()) {
    if (name != "model/words.weight") zeros.push_back({name, Tensor(tensor.shape(), tensor.dtype())});
  }
  const std::string error = error_of([&] { run.trainer->load(zeros, 0); });
  EXPECT_NE(error.find("'model/words.weight' is missing"), std::string::npos) << error;
  EXPECT_EQ(run.trainer->weights_hash(), before) << "dense parameters, too";
}

// A piece stands under its own name; a whole table of a piece's size is another table.
TEST(Tables, RefuseATableOfTheSizeOfAPiece) {
  if (!world().is_root()) return;
  constexpr std::int64_t kPiece = train::TableState::kPieceElements;
  struct Wide : nn::Module {
    nn::Child<nn::Embedding> rows{this, "rows", {.num_embeddings = kPiece + 8, .embedding_dim = 1, .sparse = true}};
    plan::Traced trace(const plan::Inputs& in) { return {.loss = mean_squared_error(rows(in["id"]), in["target"])}; }
  } network;
  const std::vector<data::Field> fields = {{"id", {}, DType::I32}, {"target", {1}, DType::F32}};
  train::Trainer trainer(Communicator::self(), network, [&](const plan::Inputs& in) { return network.trace(in); },
                         fields, {.global_batch = 2});
  const TemporaryDirectory folder;
  std::vector<io::NamedTensor> weights;
  weights.push_back({"rows.weight", Tensor({kPiece, 1}, DType::F32)});
  checkpoint::save_weights(folder.path() / "weights.h5", weights);
  const std::uint64_t before = trainer.weights_hash();
  const std::string error = error_of([&] { trainer.load_weights(folder.path() / "weights.h5"); });
  EXPECT_NE(error.find("rows.weight (16777216, 1) instead of (16777224, 1)"), std::string::npos) << error;
  EXPECT_EQ(trainer.weights_hash(), before);
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
  Clicks other(true);
  const std::string by_layer = error_of([&] {
    train::Trainer(Communicator::self(), other, [&](const plan::Inputs& in) { return other.trace(in); },
                   run.loader->fields(), {.global_batch = 4, .update = {.clip_layer_norm = 1}});
  });
  EXPECT_NE(by_layer.find("norm of each parameter (1) with sparse tables"), std::string::npos) << by_layer;
  EXPECT_THROW(run.trainer->gradient("words.weight"), Error);
}

}  // namespace
}  // namespace lockstep::test
