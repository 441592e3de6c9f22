// A session whose samples come from producers: checkpoints that contain the reservoirs, a resume that tells producers
// where to go on, streams of unequal lengths, producers that fail or are slow.
#include <array>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/train/run/stream_state.h"
#include "tests/mpi/session_run.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using Counts = data::Reservoir::Counts;

const std::vector<data::Field> kFields{{"x", {3}, DType::F64}, {"y", {2}, DType::F64}};

// Sample `n` of a rank's simulation.
void simulate(int rank, std::int64_t n, std::span<std::byte* const> out) {
  RandomStream random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(n));
  auto *x = reinterpret_cast<double*>(out[0]), *y = reinterpret_cast<double*>(out[1]);
  for (int k = 0; k < 3; ++k) x[k] = random.uniform(-1, 1);
  y[0] = x[0] * x[1];
  y[1] = x[1] - x[2];
}

// Adds noise, which must be the same after a resume.
class Noise : public data::Transform {
 public:
  std::vector<data::Field> fields(const std::vector<data::Field>& in) const override { return in; }
  void apply(const data::SampleKey& key, const std::vector<data::Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override {
    for (std::size_t f = 0; f < shape.size(); ++f) std::memcpy(out[f], in[f], shape[f].bytes());
    *reinterpret_cast<double*>(out[1]) += key.random("noise").uniform(-0.1, 0.1);
  }
};

using Pull = std::function<bool(const data::StreamStart&, std::int64_t, data::StreamSample&)>;

// Streams whose samples `pull` makes, by their number.
data::StreamSource source_of(const Pull& pull, int prefetch, std::vector<data::StreamStart>* starts = nullptr) {
  return {.fields = kFields,
          .open = [pull, starts](const data::StreamStart& start) -> data::StreamPull {
            if (starts != nullptr) starts->push_back(start);
            return [pull, start, n = start.consumed](data::StreamSample& sample) mutable {
              return pull(start, n++, sample);
            };
          },
          .prefetch = prefetch,
          .description = "simulations"};
}
// Streams of `length(rank)` samples.
data::StreamSource stream_of(const std::function<std::int64_t(int)>& length, int prefetch = 2,
                             std::vector<data::StreamStart>* starts = nullptr) {
  return source_of(
      [length](const data::StreamStart& start, std::int64_t n, data::StreamSample& sample) {
        if (n >= length(start.rank)) return false;
        simulate(start.rank, n, sample.fields);
        return true;
      },
      prefetch, starts);
}
data::StreamSource endless(int prefetch = 2, std::vector<data::StreamStart>* starts = nullptr) {
  return stream_of([](int) { return std::int64_t{1} << 40; }, prefetch, starts);
}

train::Options stream_options(const fs::path& output, std::int64_t steps) {
  train::Options options = options_for(output, steps);
  options.global_batch = 8 * world().size();
  options.stream = {.steps_per_epoch = 5, .reservoir = {.capacity = 20, .replay = 0.5}};
  options.precision = train::Precision::F64;
  options.rate.peak = 0.05;
  options.checkpoints.every_steps = 3;
  options.checkpoints.keep = "0";
  options.log_every = 1;
  return options;
}

struct Outcome {
  std::uint64_t weights = 0;
  std::int64_t updates = 0, samples = 0;  // samples: of all updates in this start
  int status = 0;
};

Outcome train_stream(const comm::Communicator& comm, const train::Options& options, data::StreamSource source,
                     const std::function<void(std::int64_t)>& after_step = {}) {
  data::RunData data;
  data.stream = std::move(source);
  data.train_transforms = {std::make_shared<Noise>()};
  data.eval = std::make_unique<data::FunctionDataset>(data::FunctionDatasetOptions{
      .size = 16, .fields = kFields, .read = [](std::int64_t i, std::span<std::byte* const> out) {
        simulate(99, i, out);
      }});
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 3, .out = 16}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 16, .out = 2});
  train::Session session(comm, options, "test_stream_session", "{}", std::move(data));
  train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
    const Value y = network(in["x"]);
    return plan::Traced{.loss = mean_squared_error(y, in["y"]), .prediction = y};
  });
  Outcome result;
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) {
      const train::Totals& totals = trainer.step(batch, session.learning_rate());
      result.samples += totals.samples;
      session.report(totals);
      if (after_step) after_step(trainer.updates());
    }
    session.finish_epoch();
  }
  result.weights = trainer.weights_hash();
  result.updates = trainer.updates();
  result.status = session.status();
  return result;
}

fs::path file(const fs::path& output, std::int64_t step) { return checkpoint::path_for(output / "checkpoints", step); }

// New samples of a rank up to this update: 8 at first, then 4 beside 4 past ones.
std::int64_t consumed_at(std::int64_t update) { return 8 + 4 * (update - 1); }

TEST(StreamSession, AResumedRunIsThatOfNoStop) {
  const SharedDirectory shared;
  for (const int prefetch : {0, 3}) {
    const fs::path whole = shared.path() / formatted("whole{}", prefetch),
                   part = shared.path() / formatted("part{}", prefetch);
    std::vector<data::StreamStart> starts;
    const Outcome expected = train_stream(world(), stream_options(whole, 12), endless(prefetch, &starts));
    ASSERT_EQ(starts.size(), 1U);
    EXPECT_EQ(starts[0].consumed, 0);
    EXPECT_EQ(starts[0].next_id, world().rank());
    EXPECT_EQ(expected.updates, 12);
    EXPECT_EQ(expected.samples, 12 * 8 * world().size());
    // Stopped after 7 updates, and started again.
    train_stream(world(), stream_options(part, 7), endless(prefetch));
    train::Options again = stream_options(part, 12);
    again.checkpoints.resume = "auto";
    starts.clear();
    EXPECT_EQ(train_stream(world(), again, endless(prefetch, &starts)).weights, expected.weights);
    ASSERT_EQ(starts.size(), 1U);
    EXPECT_EQ(starts[0].consumed, consumed_at(7));
    EXPECT_EQ(starts[0].next_id, world().rank() + consumed_at(7) * world().size());
    EXPECT_TRUE(starts[0].earlier.empty());
    if (world().is_root())
      expect_contains(log_of(part), formatted("stream: of this rank's samples {} are trained", consumed_at(7)));
    // Killed after more updates than the checkpoint has.
    again.checkpoints.resume = file(whole, 6).string();
    EXPECT_EQ(train_stream(world(), again, endless(prefetch, &starts)).weights, expected.weights);
    EXPECT_EQ(starts.back().consumed, consumed_at(6));
    world().barrier();
  }
}

TEST(StreamSession, ACheckpointContainsProgressAndPastSamples) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  train_stream(world(), stream_options(output, 3), endless());
  if (world().is_root()) {
    const checkpoint::Checkpoint saved = checkpoint::load(file(output, 3));
    const nlohmann::json stream = nlohmann::json::parse(saved.metadata).at("stream");
    const auto size = static_cast<std::size_t>(world().size());
    EXPECT_EQ(stream.at("consumed"), nlohmann::json(std::vector(1, std::vector(size, consumed_at(3)))));
    const Shape ids{16}, x{16, 3};
    for (std::size_t r = 0; r < size; ++r) {
      EXPECT_EQ(stream.at("reservoirs").at(r).at("held"), 16);
      const std::string prefix = formatted("reservoir/rank-{:04}/", r);
      int found = 0;
      for (const auto& [name, tensor] : saved.tensors) {
        if (name == prefix + "ids") {
          EXPECT_EQ(tensor.shape(), ids);
          for (std::size_t slot = 0; slot < 16; ++slot)
            EXPECT_EQ(tensor.data<std::int64_t>()[slot], static_cast<std::int64_t>(r + slot * size));
          ++found;
        }
        if (name == prefix + "fields/x") {
          EXPECT_EQ(tensor.shape(), x);
          std::array<double, 3> sample{};
          std::array<double, 2> target{};
          std::array<std::byte*, 2> out{reinterpret_cast<std::byte*>(sample.data()),
                                        reinterpret_cast<std::byte*>(target.data())};
          simulate(static_cast<int>(r), 15, out);
          EXPECT_EQ(tensor.data<double>()[45], sample[0]);
          ++found;
        }
      }
      EXPECT_EQ(found, 2);
    }
  }
  world().barrier();
}

TEST(StreamSession, GoesOnUntilTheStreamsOfAllRanksHaveEnded) {
  const SharedDirectory shared;
  train::Options options = stream_options(shared.path() / "run", 1000);
  options.stream.reservoir.capacity = 0;
  options.eval_every = 1;
  options.checkpoints.every_epochs = 1;
  options.epochs = 100;
  const auto length = [](int rank) { return 20 + 30 * rank; };
  const int last = world().size() - 1;
  const Outcome outcome = train_stream(world(), options, stream_of(length));
  std::int64_t all = 0;
  for (int r = 0; r <= last; ++r) all += length(r);
  EXPECT_EQ(outcome.samples, all) << "each sample once";
  EXPECT_EQ(outcome.updates, (length(last) + 7) / 8);
  EXPECT_EQ(outcome.status, 0);
  if (world().is_root()) {
    std::ifstream in(shared.path() / "run" / "metrics.jsonl");
    std::int64_t of_epochs = 0;
    std::vector<std::int64_t> evaluated, ends;
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (record["split"] == "epoch") of_epochs += record["samples"].get<std::int64_t>();
      if (record["split"] == "eval") evaluated.push_back(record["step"].get<std::int64_t>());
    }
    for (std::int64_t end = 5; end < outcome.updates; end += 5) ends.push_back(end);
    ends.push_back(outcome.updates);
    EXPECT_EQ(of_epochs, all);
    EXPECT_EQ(evaluated, ends) << "after each epoch, and once where the streams end";
    EXPECT_TRUE(fs::exists(file(options.output, outcome.updates)));
  }
  world().barrier();
  // A producer that has more after all.
  options.checkpoints.resume = "auto";
  EXPECT_EQ(train_stream(world(), options, stream_of(length)).updates, outcome.updates) << "nothing is left";
  std::vector<data::StreamStart> starts;
  const auto longer = [&](int rank) { return length(rank) + 16; };
  EXPECT_EQ(train_stream(world(), options, stream_of(longer, 2, &starts)).updates, outcome.updates + 2);
  EXPECT_EQ(starts[0].consumed, length(world().rank()));
}

TEST(StreamSession, AProducerThatFailsEndsTheRunOnAllRanks) {
  const SharedDirectory shared;
  const int last = world().size() - 1;
  const Pull diverges = [last](const data::StreamStart& start, std::int64_t n, data::StreamSample& sample) {
    check(start.rank != last || n < 21, "simulation", "diverged at step {}", n);
    simulate(start.rank, n, sample.fields);
    return true;
  };
  for (const int prefetch : {0, 2}) {
    std::string message;
    try {
      train_stream(world(), stream_options(shared.path() / formatted("run{}", prefetch), 100),
                   source_of(diverges, prefetch));
    } catch (const comm::AgreedError& error) {
      message = error.what();
    }
    expect_contains(message, "[simulation] diverged at step 21");
    if (world().size() > 1) expect_contains(message, formatted("rank {}", last));
  }
  data::StreamSource refuses = endless();
  refuses.open = [last](const data::StreamStart& start) -> data::StreamPull {
    check(start.rank != last, "simulation", "has no input");
    return [](data::StreamSample&) { return false; };
  };
  expect_contains(error_of([&] { train_stream(world(), stream_options(shared.path() / "open", 3), refuses); }),
                  "[simulation] has no input");
}

// The producer of rank 0 waits until the watchdog says so; after that long, a rank that stands still is reported too.
TEST(StreamSession, ASlowProducerIsNoRankThatStandsStill) {
  const SharedDirectory shared;
  train::Options options = stream_options(shared.path() / "run", 3);
  options.stall = {.report = 1, .abort = 0};
  std::atomic<bool> told = false;
  const Pull slow = [&](const data::StreamStart& start, std::int64_t n, data::StreamSample& sample) {
    while (start.rank == 0 && n == 10 && !told) {
      std::string logs;
      for (int r = 0; r < start.size; ++r) {
        std::ifstream in(shared.path() / "run" / "logs" / formatted("rank-{:04}.log", r));
        logs.append(std::istreambuf_iterator<char>(in), {});
      }
      told =
          logs.find("s for samples of its stream: at step 1, waiting for samples of its stream") != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    simulate(start.rank, n, sample.fields);
    return true;
  };
  EXPECT_EQ(train_stream(world(), options, source_of(slow, 1)).updates, 3);
  EXPECT_EQ(told, world().is_root());
}

TEST(StreamSession, AnotherNumberOfRanksDealsThePastSamples) {
  const SharedDirectory shared;
  const fs::path together = shared.path() / "together", alone = shared.path() / "alone";
  train_stream(world(), stream_options(together, 3), endless());
  const comm::Communicator one = world().split(world().rank(), 0);
  std::vector<data::StreamStart> starts;
  if (world().is_root()) {
    train::Options options = stream_options(alone, 5);
    options.stream.reservoir.capacity = 100;
    options.checkpoints.resume = file(together, 3).string();
    train_stream(one, options, endless(2, &starts));
    const auto before = static_cast<std::size_t>(world().size());
    ASSERT_EQ(starts.size(), 1U);
    if (before > 1) {
      EXPECT_EQ(starts[0].consumed, 0);
      EXPECT_EQ(starts[0].earlier, std::vector(1, std::vector(before, consumed_at(3))));
      EXPECT_EQ(starts[0].next_id, consumed_at(3) * world().size()) << "no id is used twice";
      // All batches are of half past samples: two updates of 4 ranks' batches.
      const nlohmann::json stream = nlohmann::json::parse(checkpoint::load(file(alone, 5)).metadata).at("stream");
      EXPECT_EQ(stream.at("consumed").at(1).at(0), 2 * options.global_batch / 2);
      EXPECT_EQ(stream.at("reservoirs").at(0).at("held"),
                std::min<std::int64_t>(100, 16 * world().size() + options.global_batch));
    }
  }
  world().barrier();
  train::Options options = stream_options(shared.path() / "again", 7);
  options.checkpoints.resume = file(alone, 5).string();
  starts.clear();
  EXPECT_EQ(train_stream(world(), options, endless(2, &starts)).updates, 7);
  EXPECT_EQ(starts[0].earlier.size(), world().size() > 1 ? 2U : 0U);
  world().barrier();
}

TEST(StreamSession, ACheckpointThatCannotTakeThePastSamplesIsReported) {
  const SharedDirectory shared;
  const train::Options options = stream_options(shared.path() / "run", 4);
  const std::string message = error_of([&] {
    train_stream(world(), options, endless(), [&](std::int64_t step) {
      if (step != 1 || !world().is_root()) return;
      fs::remove_all(shared.path() / "run" / "checkpoints");
      std::ofstream(shared.path() / "run" / "checkpoints") << "in the way";
    });
  });
  expect_contains(message, "the final checkpoint could not be written");
  if (world().is_root())
    expect_contains(log_of(options.output), "the checkpoint of step 3 is not written, and training goes on");
  world().barrier();
}

TEST(StreamSession, WrongOptionsAreRefused) {
  const SharedDirectory shared;
  train::Options options = stream_options(shared.path() / "run", 3);
  options.trainer.shards = 4;
  expect_contains(error_of([&] { train_stream(world(), options, endless()); }), "--shards is 4, expected 0");
  data::StreamSource closed = endless();
  closed.open = nullptr;
  expect_contains(error_of([&] { train_stream(world(), stream_options(shared.path() / "run", 3), closed); }),
                  "StreamSource::open is empty");
}

TEST(StreamState, SamplesAreDealtInTurn) {
  using Origins = std::vector<std::vector<train::SampleOrigin>>;
  const std::vector<Counts> saved{{.offered = 9, .batches = 2, .held = 3}, {.offered = 5, .batches = 2, .held = 2}};
  EXPECT_EQ(train::deal(saved, 2, 3), (Origins{{{0, 0}, {0, 1}, {0, 2}}, {{1, 0}, {1, 1}}}));
  EXPECT_EQ(train::deal(saved, 3, 3), (Origins{{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}, {{0, 2}}}));
  const Origins one = train::deal(saved, 1, 4);
  EXPECT_EQ(one[0].size(), 4U);
  EXPECT_EQ(train::deal(saved, 1, 4), one);
  const train::StreamProgress before{.consumed = {{9, 5}}, .reservoirs = saved};
  const train::StreamProgress fewer = before.continued(1, 4);
  EXPECT_EQ(fewer.consumed, (std::vector<std::vector<std::int64_t>>{{9, 5}, {0}}));
  EXPECT_EQ(fewer.reservoirs, (std::vector<Counts>{{.offered = 14, .batches = 2, .held = 4}}));
  EXPECT_EQ(before.continued(2, 3).reservoirs, saved);
  EXPECT_TRUE(before.continued(2, 0).reservoirs.empty());
  EXPECT_EQ(fewer.start(0).next_id, 18);
  const nlohmann::json json{{"stream", train::to_json(fewer)}};
  EXPECT_EQ(train::stream_progress(json, "f").reservoirs, fewer.reservoirs);
  const auto wrong = nlohmann::json::parse(R"({"stream": {"consumed": [[-1]], "reservoirs": []}})");
  expect_contains(error_of([&] { train::stream_progress(wrong, "f"); }), "negative");
  expect_contains(error_of([&] { train::stream_progress(nlohmann::json::object(), "f"); }), "'stream' in its metadata");
}

}  // namespace
}  // namespace lockstep::test
