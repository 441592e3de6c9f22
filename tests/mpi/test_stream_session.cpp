// A session whose samples come from producers: checkpoints that contain the reservoirs, and a resume that tells
// producers where to go on, at any number of ranks.
#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/train/run/stream_state.h"
#include "tests/mpi/stream_run.h"

namespace lockstep::test {
namespace {

using Counted = data::Reservoir::Counts;

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
    if (prefetch == 0) continue;
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

TEST(StreamState, SamplesAreDealtInTurn) {
  using Origins = std::vector<std::vector<train::SampleOrigin>>;
  const std::vector<Counted> saved{{.offered = 9, .batches = 2, .held = 3}, {.offered = 5, .batches = 2, .held = 2}};
  EXPECT_EQ(train::deal(saved, 2, 3), (Origins{{{0, 0}, {0, 1}, {0, 2}}, {{1, 0}, {1, 1}}}));
  EXPECT_EQ(train::deal(saved, 3, 3), (Origins{{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}, {{0, 2}}}));
  const Origins one = train::deal(saved, 1, 4);
  EXPECT_EQ(one[0].size(), 4U);
  EXPECT_EQ(train::deal(saved, 1, 4), one);
  const train::StreamProgress before{.consumed = {{9, 5}}, .reservoirs = saved};
  const train::StreamProgress fewer = before.continued(1, 4);
  EXPECT_EQ(fewer.consumed, (std::vector<std::vector<std::int64_t>>{{9, 5}, {0}}));
  EXPECT_EQ(fewer.reservoirs, (std::vector<Counted>{{.offered = 14, .batches = 2, .held = 4}}));
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
