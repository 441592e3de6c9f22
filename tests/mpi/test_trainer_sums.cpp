// Without shards, in f64 and at one global batch, any number of ranks trains what one rank trains, up to the order of
// additions: uneven parts, ranks without samples, micro-batches, class weights, dropout, streams of uneven length.
#include "lockstep/data/stream.h"
#include "lockstep/losses/pieces.h"
#include "lockstep/losses/regression.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;

Task in_f64(std::int64_t shards = 0) {
  Task task;
  task.options.shards = shards;
  task.options.precision = DType::F64;
  task.options.rule = optim::sgd({.momentum = 0.9});
  return task;
}

void expect_close(const Rig& a, const Rig& b, double tolerance, const std::string& what) {
  EXPECT_LE(distance(a.losses, b.losses), tolerance) << what;
  EXPECT_LE(distance(*a.trainer, *b.trainer), tolerance) << what;
}

void expect_as_alone(const Task& task, double tolerance, const std::string& what) {
  const auto alone = run_task(Communicator::self(), task), together = run_task(world(), task);
  expect_close(*together, *alone, tolerance, formatted("{} on {} ranks", what, world().size()));
}

TEST(F64, FiftyStepsAgree) {
  Task task = in_f64();
  task.steps = 50;
  expect_as_alone(task, 1e-9, "sgd");
  task.options.rule = optim::adam({});
  task.lr = 0.003;
  expect_as_alone(task, 1e-9, "adam");
}

TEST(F64, FiftyStepsWithBatchNormPerShardAgree) {
  Task task = in_f64(4);
  task.samples = 90;
  task.channels = 3;
  task.side = 8;
  task.network = make_resnet;
  task.options.global_batch = 32;
  task.steps = 50;
  expect_as_alone(task, 1e-9, "resnet");
}

TEST(F64, MicroBatchesAreOneBigBatch) {
  for (const std::int64_t shards : {std::int64_t{0}, std::int64_t{4}, std::int64_t{7}}) {
    Task task = in_f64(shards);
    const auto whole = run_task(Communicator::self(), task);
    for (const std::int64_t micro : {2, 5, 40}) {  // 40: more micro-batches than samples in a part
      task.options.accumulate = micro;
      expect_close(*run_task(world(), task), *whole, 1e-12, formatted("{} micro-batches, {} shards", micro, shards));
    }
  }
}

TEST(F64, RanksWithoutSamplesTakePart) {
  Task task = in_f64();
  task.samples = 7;
  task.options.global_batch = 3;  // steps of 3, 3 and 1 on up to 4 ranks
  task.steps = 9;
  expect_as_alone(task, 1e-12, "fewer samples than ranks");
  task.options.accumulate = 2;
  expect_as_alone(task, 1e-12, "fewer samples than ranks, in micro-batches");
}

TEST(F64, ClassWeightsCountOverAllRanks) {
  Task task = in_f64();
  double smoothing = 0.1, ignored = 0.01;
  task.model = [&](const models::Classifier& n) {
    return [&n, smoothing, ignored](const plan::Inputs& in) {
      return plan::Traced{
          .loss = cross_entropy(n(in["image"]), in["label"],
                                {.label_smoothing = smoothing, .class_weights = {0.2, 3, 1, ignored, 0.7}})};
    };
  };
  expect_as_alone(task, 1e-12, "class weights");
  task.options.accumulate = 3;
  expect_as_alone(task, 1e-12, "class weights in micro-batches");
  smoothing = 0;
  ignored = 0;
  task.options.accumulate = 40;  // of one sample each: some weigh nothing
  expect_as_alone(task, 1e-12, "a class without weight");
}

TEST(F64, WeightsOfSamplesCountOverAllRanks) {
  Task task = in_f64();
  task.model = [](const models::Classifier& n) {
    return [&n](const plan::Inputs& in) {
      const Value logits = n(in["image"]), weight = relu(sum_behind(in["image"], 1));  // 0 for some samples
      return plan::Traced{.loss = huber_loss(logits, scale_shift(logits, 0, 1), {.delta = 0.5}, {.sample = weight})};
    };
  };
  expect_as_alone(task, 1e-12, "weights of samples");
  task.options.accumulate = 40;  // of one sample each: some weigh nothing
  expect_as_alone(task, 1e-12, "weights of samples in micro-batches");
  task.model = [](const models::Classifier& n) {
    return [&n](const plan::Inputs& in) {
      return plan::Traced{.loss = cross_entropy(n(in["image"]), in["label"], {.ignore_index = 3})};
    };
  };
  expect_as_alone(task, 1e-12, "an ignored class");
}

TEST(F64, AStepOfWeightZeroIsAnError) {
  Task task = in_f64();
  task.model = [](const models::Classifier& n) {
    return [&n](const plan::Inputs& in) {
      return plan::Traced{.loss = cross_entropy(n(in["image"]), in["label"], {.class_weights = {0, 0, 0, 0, 0}})};
    };
  };
  const comm::Communicator comm = comm::Communicator::world();  // an error in the middle of a step is its end
  Rig rig(comm, task);
  EXPECT_NE(error_of([&] { rig.train(1); }).find("weights of 128 samples add up to 0"), std::string::npos);
}

TEST(F64, DropoutDoesNotDependOnRanks) {
  Task task = in_f64();
  task.network = [] { return std::make_unique<DropoutNet>(0.5); };
  expect_as_alone(task, 1e-12, "dropout");
}

// Rank r's stream has 3 + 5 r samples, or none for the last of several ranks: ranks end in different steps.
std::int64_t stream_length(int rank, int size) { return size > 1 && rank == size - 1 ? 0 : 3 + 5 * rank; }

// Samples [begin, end) of rank r's stream, which are samples 100 r + i of the data set.
void append(const data::Dataset& set, int rank, Range part, std::vector<double>& pixels,
            std::vector<std::int32_t>& labels, Samples& ids) {
  std::vector<float> image(36);
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    std::int32_t label = 0;
    const std::vector<std::byte*> out{reinterpret_cast<std::byte*>(image.data()), reinterpret_cast<std::byte*>(&label)};
    ids.push_back(100 * rank + i);
    set.read(ids.back(), out);
    pixels.insert(pixels.end(), image.begin(), image.end());
    labels.push_back(label);
  }
}

data::Batch make_batch(const std::vector<double>& pixels, const std::vector<std::int32_t>& labels, const Samples& ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  data::Batch batch;
  batch.names = {"image", "label"};
  batch.fields.push_back(Tensor::from<double>(Shape{n, 1, 6, 6}, pixels));
  batch.fields.push_back(Tensor::from<std::int32_t>(Shape{n}, labels));
  batch.step = {.global_size = n, .local = {0, n}, .samples = ids};
  return batch;
}

TEST(Streams, OfUnevenLengthTrainWhatEachRankHas) {
  constexpr std::int64_t kBatch = 4;
  const int size = world().size();
  Task task = in_f64();
  task.samples = 400;
  task.options.global_batch = kBatch * size;
  Rig together(world(), task);
  std::int64_t pulled = 0;
  data::StreamLoader stream({.fields = together.dataset->fields(),
                             .pull =
                                 [&](data::StreamSample& sample) {
                                   if (pulled == stream_length(world().rank(), size)) return false;
                                   sample.id = 100 * world().rank() + pulled++;
                                   together.dataset->read(sample.id, sample.fields);
                                   return true;
                                 },
                             .batch = kBatch,
                             .floats = DType::F64});
  Rig alone(Communicator::self(), task);
  std::int64_t steps = 0, samples = 0;
  for (;; ++steps) {
    const train::Totals totals = together.trainer->step(stream.next(), task.lr);
    std::vector<double> pixels;
    std::vector<std::int32_t> labels;
    Samples ids;
    for (int r = 0; r < size; ++r) {
      const std::int64_t length = stream_length(r, size);
      append(*together.dataset, r, {std::min(length, steps * kBatch), std::min(length, (steps + 1) * kBatch)}, pixels,
             labels, ids);
    }
    EXPECT_EQ(totals.samples, static_cast<std::int64_t>(ids.size())) << "step " << steps;
    if (totals.samples == 0 || ids.empty()) break;
    samples += totals.samples;
    const train::Totals expected = alone.trainer->step(std::optional(make_batch(pixels, labels, ids)), task.lr);
    EXPECT_NEAR(totals.loss, expected.loss, 1e-12) << "step " << steps;
  }
  EXPECT_EQ(together.trainer->updates(), steps) << "the step without samples is no update";
  EXPECT_GT(samples, 0);
  EXPECT_LE(distance(*together.trainer, *alone.trainer), 1e-12);
}

TEST(Streams, HaveNoShards) {
  Rig rig(comm::Communicator::world(), in_f64(4));  // of its own: a call that is refused poisons it
  EXPECT_NE(error_of([&] {
              rig.trainer->step(std::optional<data::Batch>(), 0.1);
            }).find("streams cannot be divided into shards"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::test
