// Streams of a session that end at different steps, producers that fail or are slow, and checkpoints that cannot be
// written.
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/agreement.h"
#include "tests/mpi/stream_run.h"

namespace lockstep::test {
namespace {

TEST(StreamEnds, GoesOnUntilTheStreamsOfAllRanksHaveEnded) {
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

// The last step's checkpoint is written before the run knows that the streams have ended.
TEST(StreamEnds, TheLastCheckpointHasTheMeanOfWeightsOfTheLastEpoch) {
  const SharedDirectory shared;
  train::Options options = stream_options(shared.path() / "run", 1000);
  options.stream.reservoir.capacity = 0;
  options.eval_every = 0;
  options.epochs = 100;
  options.checkpoints.every_steps = 7;
  options.checkpoints.every_epochs = 0;
  options.trainer.average.swa_start = 1;
  EXPECT_EQ(train_stream(world(), options, stream_of([](int) { return 7 * 8; })).updates, 7) << "1.4 epochs";
  if (world().is_root()) {
    const std::vector<io::NamedTensor> tensors = checkpoint::load(file(options.output, 7)).tensors;
    const auto count = std::ranges::find(tensors, checkpoint::kAverageCount, &io::NamedTensor::name);
    ASSERT_NE(count, tensors.end());
    EXPECT_EQ(count->tensor.data<double>()[0], 2);
  }
  world().barrier();
}

TEST(StreamEnds, AProducerThatFailsEndsTheRunOnAllRanks) {
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
TEST(StreamEnds, ASlowProducerIsNoRankThatStandsStill) {
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

TEST(StreamEnds, ACheckpointThatCannotTakeThePastSamplesIsReported) {
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

TEST(StreamEnds, WrongOptionsAreRefused) {
  const SharedDirectory shared;
  train::Options options = stream_options(shared.path() / "run", 3);
  options.trainer.shards = 4;
  expect_contains(error_of([&] { train_stream(world(), options, endless()); }), "--shards is 4, expected 0");
  data::StreamSource closed = endless();
  closed.open = nullptr;
  expect_contains(error_of([&] { train_stream(world(), stream_options(shared.path() / "run", 3), closed); }),
                  "StreamSource::open is empty");
}

}  // namespace
}  // namespace lockstep::test
