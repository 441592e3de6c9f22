// Fine-tuning in a session: what --freeze, --lr-scale and --replace-head do to weights and rates, at any number of
// ranks, and what they refuse.
#include <cmath>
#include <map>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/norms.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/plan/compiled_model.h"
#include "tests/mpi/session_run.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

// A convolution with batch norm, and a head for `classes` classes.
class TunedNetwork : public models::Classifier {
 public:
  explicit TunedNetwork(std::int64_t classes) : head_(this, "head", {.in = 4, .out = classes}) {}
  Value operator()(Value x) const override { return head_(mean(relu(norm_(conv_(x))), {2, 3})); }

 private:
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 1, .out = 4, .kernel = 3, .stride = 2}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 4}};
  nn::Child<nn::Linear> head_;
};

data::RunData larger_images() { return {.train = make_images(128, 1, 12), .eval = make_images(32, 1, 12)}; }

using Tensors = std::map<std::string, std::vector<float>>;

struct Trained {
  Tensors before, after;
  std::uint64_t hash = 0;
  int status = 0;
};

Tensors tensors_of(train::Trainer& trainer) {
  Tensors all;
  for (const io::NamedTensor& t : checkpoint::weights(trainer.model().parameters())) {
    if (t.tensor.dtype() != DType::F32) continue;
    const auto values = t.tensor.data<float>();
    all[t.name] = {values.begin(), values.end()};
  }
  return all;
}

Trained train_tuned(const comm::Communicator& comm, const train::Options& options, std::int64_t classes = 10) {
  train::Session session(comm, options, "test_tuning", "{}", larger_images());
  const TunedNetwork network(classes);
  train::Trainer& trainer = session.build(network, models::classify(network));
  trainer.settle();
  Trained result{.before = tensors_of(trainer), .after = {}};
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
    session.finish_epoch();
  }
  result.after = tensors_of(trainer);
  result.hash = trainer.weights_hash();
  result.status = session.status();
  return result;
}

train::Options tuning_options(const fs::path& output, std::int64_t steps = 3) {
  train::Options options = options_for(output, steps);
  options.trainer.shards = 4;
  options.optimizer.rule = optim::Rule::Sgd;
  options.rate.peak = 0.05;
  return options;
}

TEST(Tuning, FrozenParametersAndTheirStatisticsStay) {
  const SharedDirectory shared;
  const auto run = [](const comm::Communicator& comm, const fs::path& output) {
    train::Options options = tuning_options(output);
    options.tuning.freeze = "conv.*,nor?.*";
    return train_tuned(comm, options);
  };
  const Trained together = run(world(), shared.path() / "together");
  for (const auto& [name, values] : together.before)
    EXPECT_EQ(together.after.at(name) == values, !name.starts_with("head.")) << name;
  EXPECT_EQ(together.hash, alone(shared.path(), run).hash);
  if (world().is_root())
    expect_contains(log_of(shared.path() / "together"),
                    "frozen: 4 of 6 parameters, and the statistics of 1 batch norms");
}

TEST(Tuning, StatisticsOfATrainedNormMove) {
  const SharedDirectory shared;
  train::Options options = tuning_options(shared.path() / "run");
  options.tuning.freeze = "*.bias";
  const Trained run = train_tuned(world(), options);
  for (const auto& [name, values] : run.before)
    EXPECT_EQ(run.after.at(name) == values, name.ends_with(".bias")) << name;
}

TEST(Tuning, RatesAreScaledByTheFirstPatternThatMatches) {
  const SharedDirectory shared;
  const auto moves = [&](const std::string& scales, double decay = 0) {
    train::Options options = tuning_options(shared.path() / formatted("scaled{}", scales.size()), 1);
    options.optimizer.sgd.momentum = 0;
    options.precision = train::Precision::F64;
    options.tuning.lr_scale = scales;
    options.trainer.update.weight_decay = decay;
    options.trainer.update.groups = {{.pattern = "head.*", .weight_decay = 0}};  // the program's own
    if (decay > 0) options.tuning.no_decay = "conv.weight,*.bias";
    train::Session session(world(), options, "test_tuning", "{}", larger_images());
    const TunedNetwork network(10);
    train::Trainer& trainer = session.build(network, models::classify(network));
    std::map<std::string, double> moved;
    const auto add = [&](double sign) {
      for (const io::NamedTensor& t : checkpoint::weights(trainer.model().parameters())) {
        if (t.tensor.dtype() == DType::F64) moved[t.name] += sign * t.tensor.data<double>()[0];
      }
    };
    add(-1);
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
      trainer.settle();
      session.finish_epoch();
    }
    add(1);
    return moved;
  };
  auto plain = moves(""), scaled = moves("head.weight=0.5,head.*=3,conv.*=0.25");
  auto decayed = moves("head.weight=0.5,head.*=3,conv.weight=0.25", 0.1);
  for (const auto& [name, factor] :
       {std::pair{"head.weight", 0.5}, {"head.bias", 3.0}, {"conv.weight", 0.25}, {"norm.weight", 1.0}}) {
    EXPECT_NE(plain[name], 0) << name;
    EXPECT_NEAR(scaled[name], factor * plain[name], 1e-14) << name;
  }
  for (const auto& [name, factor] : {std::pair{"head.weight", 0.5}, {"head.bias", 3.0}, {"conv.weight", 0.25}})
    EXPECT_NEAR(decayed[name], factor * plain[name], 1e-14) << name;  // a group of --lr-scale leaves others' decay
  EXPECT_GT(std::abs(decayed["norm.weight"] - plain["norm.weight"]), 1e-4);
}

TEST(Tuning, ANewHeadStandsOnLoadedLayers) {
  const SharedDirectory shared;
  const fs::path file = shared.path() / "ten.h5";
  {
    const TunedNetwork network(10);
    train::Options options = tuning_options(shared.path() / "ten");
    train::Session session(world(), options, "test_tuning", "{}", larger_images());
    train::Trainer& trainer = session.build(network, models::classify(network));
    if (world().is_root()) checkpoint::save_weights(file, checkpoint::weights(trainer.model().parameters()));
    world().barrier();
  }
  train::Options options = tuning_options(shared.path() / "fresh", 1);
  options.seed = 7;
  const Trained fresh = train_tuned(world(), options, 12);
  options.weights = file.string();
  options.output = (shared.path() / "refused").string();
  const std::string refused = error_of([&] { train_tuned(world(), options, 12); });
  expect_contains(refused, "head.weight (10, 4) instead of (12, 4)");
  expect_contains(refused, "for a new last layer add --replace-head");
  options.tuning.replace_head = true;
  options.output = (shared.path() / "tuned").string();
  const Trained tuned = train_tuned(world(), options, 12);
  for (const auto& [name, values] : fresh.before) {
    const bool drawn = name.starts_with("head.") || name == "norm.weight" || name == "norm.bias" ||
                       name.starts_with("norm.running");  // initial values that do not depend on the seed
    EXPECT_EQ(tuned.before.at(name) == values, drawn) << name;
  }
  if (world().is_root()) {
    const std::string log = log_of(shared.path() / "tuned");
    expect_contains(log, "weights: 7 tensors from ");
    expect_contains(log, "weights: new, with initial values: head.weight, head.bias");
    expect_contains(log, "weights: not taken from the file: head.bias, head.weight");
  }
}

TEST(Tuning, OtherLayersMustFitAlsoWithANewHead) {
  const SharedDirectory shared;
  const fs::path file = shared.path() / "other.h5", renamed = shared.path() / "renamed.h5";
  if (world().is_root()) {
    const auto tensor = [](Shape shape) { return Tensor(std::move(shape), DType::F32); };
    std::vector<io::NamedTensor> all;
    all.push_back({"conv.weight", tensor({4, 1, 3, 3})});
    for (const char* name : {"conv.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"})
      all.push_back({name, tensor({4})});
    all.push_back({"norm.num_batches_tracked", Tensor(Shape{}, DType::I64)});
    all.push_back({"fc.weight", tensor({3, 4})});
    checkpoint::save_weights(renamed, all);
    all.front().tensor = tensor({4, 3, 3, 3});
    checkpoint::save_weights(file, all);
  }
  world().barrier();
  train::Options options = tuning_options(shared.path() / "run", 1);
  options.tuning.replace_head = true;
  options.weights = file.string();
  const std::string error = error_of([&] { train_tuned(world(), options); });
  expect_contains(error, "conv.weight (4, 3, 3, 3) instead of (4, 1, 3, 3)");
  expect_contains(error, "--replace-head leaves out head.weight, head.bias alone");
  options.weights = renamed.string();  // a head of another name is the old one
  options.output = (shared.path() / "renamed").string();
  EXPECT_EQ(train_tuned(world(), options).status, 0);
  if (world().is_root())
    expect_contains(log_of(shared.path() / "renamed"), "weights: not taken from the file: fc.weight");
}

TEST(Tuning, PatternsThatMatchNothingAreNamed) {
  const SharedDirectory shared;
  const auto refuse = [&](const char* freeze, const char* scale, const std::string& text) {
    train::Options options = tuning_options(shared.path() / "run", 1);
    options.tuning.freeze = freeze;
    options.tuning.lr_scale = scale;
    expect_contains(error_of([&] { train_tuned(world(), options); }), text);
  };
  refuse("con.*", "",
         "--freeze: the pattern 'con.*' matches no parameter, did you mean 'conv.*'?; the model has conv.*, ");
  refuse("conv", "", "--freeze names 'conv', a module, expected 'conv.*'");
  refuse("", "heed.bias=2", "--lr-scale: the pattern 'heed.bias' matches no parameter, did you mean 'head.bias'?");
  refuse("norm.running_*", "", "--freeze: the pattern 'norm.running_*' matches no parameter");
  refuse("*", "", "--freeze * matches all parameters");
  refuse("conv.*", "conv.*=2", "--lr-scale: all parameters that 'conv.*' matches are frozen");
  train::Options options = tuning_options(shared.path() / "run", 1);
  options.tuning.no_decay = "conf.*";
  expect_contains(error_of([&] { train_tuned(world(), options); }),
                  "--no-decay: the pattern 'conf.*' matches no parameter, did you mean 'conv.*'?");
}

TEST(Tuning, AResumeNeedsTheSamePatterns) {
  const SharedDirectory shared;
  train::Options options = tuning_options(shared.path() / "run", 2);
  options.checkpoints.every_steps = 1;
  options.tuning.freeze = "conv.*";
  train_tuned(world(), options);
  options.checkpoints.resume = "auto";
  options.max_steps = 4;
  options.tuning.lr_scale = "head.*=2";
  expect_contains(error_of([&] { train_tuned(world(), options); }),
                  "--lr-scale was none, this run has head.*=2: parameters would go on with other rates; leave out "
                  "--lr-scale as before");
  options.tuning = {};
  expect_contains(error_of([&] { train_tuned(world(), options); }), "--freeze was conv.*, this run has none");
  options.tuning.freeze = "conv.*";
  const Trained parts = train_tuned(world(), options);
  options.checkpoints.resume = "";
  options.output = (shared.path() / "whole").string();
  EXPECT_EQ(parts.hash, train_tuned(world(), options).hash);
}

}  // namespace
}  // namespace lockstep::test
