// The average of weights (EMA, SWA) and the noise scale of a trainer: against plain loops over the states of its steps,
// at any number of ranks, and over checkpoints.
#include <algorithm>
#include <array>

#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/parallel/reduce/gradient_noise.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using State = std::vector<io::NamedTensor>;

Task resnet_task(const optim::AverageOptions& average) {
  Task task;
  task.samples = 80;
  task.channels = 3;
  task.side = 8;
  task.network = make_resnet;
  task.options.global_batch = 32;
  task.options.precision = DType::F64;
  task.options.rule = optim::sgd({.momentum = 0.9});
  task.options.average = average;
  return task;
}

const Tensor* find(const State& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &io::NamedTensor::name);
  return found == state.end() ? nullptr : &found->tensor;
}

bool is_averaged(const io::NamedTensor& tensor) {
  return tensor.name.starts_with("model/") && is_floating(tensor.tensor.dtype());
}

// The average of a model's tensor in a state.
const Tensor& average_of(const State& state, const std::string& name) {
  const std::string bare = name.substr(checkpoint::kModelPrefix.size());
  for (const std::string_view prefix : {checkpoint::kAveragedParameter, checkpoint::kAveragePrefix}) {
    if (const Tensor* tensor = find(state, std::string(prefix) + bare)) return *tensor;
  }
  fail("test", "no average of {}", name);
}

// Moves `expected`, by tensor and element, by `weight` towards the state's weights and running statistics.
void move(std::vector<std::vector<double>>& expected, const State& state, double weight) {
  std::size_t t = 0;
  for (const io::NamedTensor& tensor : state) {
    if (!is_averaged(tensor)) continue;
    const std::span<const double> values = tensor.tensor.data<double>();
    if (t == expected.size()) expected.emplace_back(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i) expected[t][i] += weight * (values[i] - expected[t][i]);
    ++t;
  }
}

void expect_averages(const std::vector<std::vector<double>>& expected, const State& state) {
  std::size_t t = 0;
  for (const io::NamedTensor& tensor : state) {
    if (!is_averaged(tensor)) continue;
    const std::span<const double> got = average_of(state, tensor.name).data<double>();
    ASSERT_EQ(got.size(), expected[t].size()) << tensor.name;
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[t][i], 1e-12) << tensor.name;
    ++t;
  }
  EXPECT_EQ(t, expected.size());
  EXPECT_GT(t, 10U);
}

double evaluate(Rig& rig) {
  const auto position = rig.loader->position();
  rig.loader->seek({});
  const double loss = rig.trainer->evaluate(*rig.loader).loss;
  rig.loader->seek(position);
  return loss;
}

// Evaluates the averages of a trainer's state as the weights of another trainer without averages.
double evaluate_as_weights(const State& state) {
  Task plain = resnet_task({});
  Rig rig(world(), plain);
  State weights = rig.trainer->state();
  for (io::NamedTensor& tensor : weights) {
    if (is_averaged(tensor) && world().is_root()) tensor.tensor = average_of(state, tensor.name).clone();
  }
  rig.trainer->load(io::source_of(weights), "test", 0);
  return evaluate(rig);
}

TEST(MovingAverage, FollowsTheWeightsAndTheRunningStatistics) {
  Rig rig(world(), resnet_task({.ema = 0.75}));
  std::vector<std::vector<double>> expected;
  move(expected, rig.trainer->state(), 1);
  for (int step = 0; step < 3; ++step) {
    rig.train(1);
    move(expected, rig.trainer->state(), 0.25);
    expect_averages(expected, rig.trainer->state());
  }
}

TEST(MovingAverage, IsWhatIsEvaluatedAndChangesNoBitOfTraining) {
  Rig rig(world(), resnet_task({.ema = 0.75})), plain(world(), resnet_task({}));
  rig.train(3);
  plain.train(3);
  const double loss = evaluate(rig);
  EXPECT_EQ(loss, evaluate_as_weights(rig.trainer->state()));
  EXPECT_NE(loss, evaluate(plain));
  rig.train(2);
  plain.train(2);
  EXPECT_EQ(rig.losses, plain.losses);
  EXPECT_EQ(rig.trainer->weights_hash(), plain.trainer->weights_hash());
}

TEST(MeanOfWeights, IsThatOfItsMoments) {
  Rig rig(world(), resnet_task({.swa_start = 1}));
  rig.train(2);
  const double before = evaluate(rig);
  EXPECT_EQ(find(rig.trainer->state(), "average/count")->data<double>()[0], 0);
  std::vector<std::vector<double>> expected;
  for (int moment = 1; moment <= 3; ++moment) {
    rig.train(1);
    rig.trainer->add_to_average();
    move(expected, rig.trainer->state(), 1.0 / moment);
    expect_averages(expected, rig.trainer->state());
  }
  const double loss = evaluate(rig);
  EXPECT_NE(loss, before);
  EXPECT_EQ(loss, evaluate_as_weights(rig.trainer->state()));
}

// Whoever loads the weights of a checkpoint gets the average, once there is one.
TEST(Averages, AreTheWeightsOfACheckpoint) {
  const SharedDirectory shared;
  const auto file = shared.path() / "checkpoint.h5";
  Rig rig(world(), resnet_task({.swa_start = 1}));
  for (const bool averaged : {false, true}) {
    rig.train(2);
    if (averaged) rig.trainer->add_to_average();
    rig.train(1);
    State state = rig.trainer->state();
    if (world().is_root()) checkpoint::save(file, {.tensors = std::move(state), .metadata = "{}"});
    world().barrier();
    Rig other(world(), resnet_task({}));
    other.trainer->load_weights(file);
    EXPECT_EQ(evaluate(other), evaluate(rig)) << averaged;
    world().barrier();
  }
}

TEST(Averages, GoOnFromAState) {
  for (const optim::AverageOptions& average : {optim::AverageOptions{.ema = 0.9}, {.swa_start = 1}}) {
    Task task = resnet_task(average);
    task.options.shards = 4;
    task.options.noise_scale = true;
    Rig whole(world(), task), first(world(), task), second(world(), task);
    const auto train = [](Rig& rig, int steps) {
      for (int s = 0; s < steps; ++s) {
        rig.train(1);
        rig.trainer->add_to_average();  // nothing for a moving average
      }
    };
    train(whole, 5);
    train(first, 3);
    second.trainer->load(io::source_of(first.trainer->state()), "test", 3);
    second.loader->seek(first.loader->position());
    train(second, 2);
    EXPECT_EQ(distance(*second.trainer, *whole.trainer), 0);
    EXPECT_EQ(evaluate(second), evaluate(whole));
  }
}

TEST(Averages, BeginWithTheWeightsThatAreLoaded) {
  Rig source(world(), resnet_task({}));
  source.train(2);
  const SharedDirectory shared;
  State weights = source.trainer->state();
  std::erase_if(weights, [](const io::NamedTensor& tensor) { return !tensor.name.starts_with("model/"); });
  for (io::NamedTensor& tensor : weights) tensor.name.erase(0, checkpoint::kModelPrefix.size());
  if (world().is_root()) checkpoint::save_weights(shared.path() / "weights.h5", weights);
  world().barrier();
  Rig rig(world(), resnet_task({.ema = 0.5}));
  rig.trainer->load_weights(shared.path() / "weights.h5");
  EXPECT_EQ(evaluate(rig), evaluate(source));
}

// --- the noise scale

// The samples `part` of a batch, as a whole step of one rank.
data::Batch rows_of(const data::Batch& batch, Range part) {
  data::Batch rows;
  rows.names = batch.names;
  rows.step = batch.step;
  rows.step.samples.assign(batch.step.samples.begin() + part.begin, batch.step.samples.begin() + part.end);
  rows.step.local = {0, part.size()};
  rows.step.global_size = part.size();
  for (const Tensor& field : batch.fields) {
    Tensor cut(field.shape().tail().batched(part.size()), field.dtype());
    const std::size_t row = field.bytes() / static_cast<std::size_t>(batch.samples());
    std::copy_n(field.raw() + static_cast<std::size_t>(part.begin) * row, cut.bytes(), cut.raw());
    rows.fields.push_back(std::move(cut));
  }
  return rows;
}

// The squared norm of the gradient of a trainer's last step.
double gradient_square(train::Trainer& trainer) {
  double square = 0;
  for (const io::NamedTensor& tensor : trainer.state()) {
    if (!tensor.name.starts_with("model/")) continue;
    const Tensor gradient = trainer.gradient(tensor.name.substr(checkpoint::kModelPrefix.size()));
    for (const double g : gradient.data<double>()) square += g * g;
  }
  return square;
}

TEST(NoiseScale, ComparesTheGradientsOfShards) {
  Task task;
  task.options.precision = DType::F64;
  task.options.shards = 5;
  task.options.global_batch = 64;
  task.options.noise_scale = true;
  task.options.rule = nullptr;
  if (world().size() > 5) GTEST_SKIP() << "five shards";
  Rig rig(world(), task);
  rig.lr = 0;
  rig.train(1);
  const double square = gradient_square(*rig.trainer);
  // The gradient of each shard alone, by a trainer with one rank, one shard and these samples.
  std::array<double, parallel::kNoiseSums> sums{};
  for (std::int64_t shard = 0; shard < 5; ++shard) {
    const Range part = part_of(64, 5, shard);
    Task alone = task;
    alone.options.shards = 1;
    alone.options.noise_scale = false;
    Rig one(comm::Communicator::self(), alone);
    one.trainer->step(rows_of(one.loader->next(), part), 0);
    sums[parallel::kShardSquares] += gradient_square(*one.trainer);
    sums[parallel::kInverseSamples] += 1 / static_cast<double>(part.size());
    sums[parallel::kShards] += 1;
  }
  const auto expected = parallel::estimate_noise(sums, square, 64);
  ASSERT_TRUE(expected);
  const State state = rig.trainer->state();
  const std::span<const double> means = find(state, "noise/means")->data<double>();
  EXPECT_EQ(means[0], 1);
  EXPECT_NEAR(means[1] / expected->trace, 1, 1e-10);
  EXPECT_NEAR(means[2] / expected->square, 1, 1e-10);
}

// A run may go back to a checkpoint of a start that did not measure it.
TEST(NoiseScale, BeginsAnewFromACheckpointWithoutIt) {
  Task task;
  task.options.noise_scale = true;
  Rig rig(world(), task);
  State state = rig.trainer->state();
  std::erase_if(state, [](const io::NamedTensor& tensor) { return tensor.name == "noise/means"; });
  rig.train(2);
  rig.trainer->load(state, 0);
  const State after = rig.trainer->state();
  for (const double value : find(after, "noise/means")->data<double>()) EXPECT_EQ(value, 0);
}

TEST(NoiseScale, OfACheckpointIsLeftWhereNoneIsAskedFor) {
  Task task;
  task.options.noise_scale = true;
  Rig first(world(), task);
  first.train(1);
  State state = first.trainer->state();
  for (io::NamedTensor& tensor : state) {
    if (tensor.name == "noise/means")
      std::ranges::copy(std::array{2.0, 3.0, 1.0}, tensor.tensor.data<double>().begin());
  }
  for (const bool wanted : {true, false}) {
    task.options.noise_scale = wanted;
    Rig second(world(), task);
    second.trainer->load(io::source_of(state), "test", 1);
    const data::Batch batch = second.loader->next();
    const auto scale = second.trainer->step(batch, 0).noise_scale;
    if (wanted) {
      const State after = second.trainer->state();
      EXPECT_EQ(find(after, "noise/means")->data<double>()[0], 3) << "it goes on";
    } else {
      EXPECT_FALSE(scale);
    }
  }
}

}  // namespace
}  // namespace lockstep::test
