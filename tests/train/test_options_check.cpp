// The options that validate() and validate_data() refuse.
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

TEST(Validate, RangesNameOptionValueAndExpectation) {
  EXPECT_EQ(validation_error({.rate = {.peak = -1}}), "[options] --lr is -1, expected a number above 0");
  EXPECT_EQ(validation_error({.label_smoothing = 1}),
            "[options] --label-smoothing is 1, expected a number at least 0 and below 1");
  EXPECT_EQ(
      parse_line({"--optimizer", "muon"}).result.message,
      "[options] --optimizer is 'muon', expected one of sgd, adam, adamw, rmsprop, adagrad, adamax, nadam, radam, "
      "lion, lars, lamb");
  EXPECT_TRUE(has(validation_error({.epochs = -2}), "--epochs is -2"));
  EXPECT_TRUE(has(validation_error({.batch_size = -4}), "--batch-size is -4"));
  EXPECT_TRUE(has(validation_error({.optimizer = {.sgd = {.momentum = 1}}}), "--momentum is 1"));
  EXPECT_TRUE(has(validation_error({.trainer = {.accumulate = 0}}), "--accumulate is 0"));
  EXPECT_TRUE(has(validation_error({.rate = {.peak = std::numeric_limits<double>::quiet_NaN()}}), "--lr is nan"));
  EXPECT_TRUE(has(validation_error({.rate = {.milestones = {4, 4}}}), "--milestones is 4,4"));
  EXPECT_TRUE(has(validation_error({.rate = {.milestones = {-1, 4}}}), "--milestones is -1"));
  EXPECT_TRUE(has(validation_error({.loaders = -2}), "--loaders is -2"));
  EXPECT_TRUE(has(validation_error({.checkpoints = {.keep = "-1"}}), "--keep is '-1'"));
  EXPECT_TRUE(has(validation_error({.checkpoints = {.keep = "last:3,newest:luck"}}), "--keep is 'last:3,newest:luck'"));
  EXPECT_EQ(validation_error({.checkpoints = {.keep = "best:loss,every:10"}}), "");
  EXPECT_TRUE(has(validation_error({.checkpoints = {.every_epochs = 0, .keep = "best:loss"}}), "--checkpoint-every"));
  EXPECT_TRUE(has(parse_line({"--precision", "f16"}).err, "--precision is 'f16'"));
}

TEST(Validate, PortableBitsRefuseWhatDependsOnTheMachine) {
  const auto error = [](std::vector<const char*> line) {
    line.insert(line.begin(), {"--bits", "portable"});
    return validation_error(parse_line(std::move(line)).options);
  };
  EXPECT_EQ(error({"--precision", "f64"}), "");
  EXPECT_TRUE(has(error({"--autotune"}), "--bits portable with --autotune, expected one of the two"));
  EXPECT_TRUE(has(error({"--precision", "bf16"}), "--bits portable with --precision bf16, expected f32 or f64"));
  EXPECT_TRUE(has(error({"--allreduce", "mpi"}), "--bits portable with --allreduce mpi, expected another path"));
}

TEST(Validate, ProductsDoNotOverflow) {
  const std::string batch =
      validation_error({.batch_size = 100'000'000, .trainer = {.accumulate = 100'000}}, 2'000'000'000);
  EXPECT_TRUE(has(batch,
                  "--batch-size 100000000 times 2000000000 ranks times --accumulate 100000 is more than "
                  "1000000000000 samples an update"))
      << batch;
  const auto data_error = [](const Options& options) -> std::string {
    try {
      validate_data(options, 1, 12000);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(data_error({.epochs = 1'000'000'000'000'000, .batch_size = 12}),
            "[options] --epochs is 1000000000000000 with 1000 updates in each, expected at most 1000000000000 epochs; "
            "--epochs 0 --max-steps N trains N updates");
  EXPECT_EQ(data_error({.epochs = 1'000'000'000'000, .batch_size = 12}), "");
  const std::string steps = data_error({.epochs = 1'000'000'000,
                                        .batch_size = 12,
                                        .rate = {.kind = optim::ScheduleOptions::Kind::Step, .step_epochs = 1e-3}});
  EXPECT_TRUE(has(steps, "--step-epochs is 0.001 in a run of 1e+09 epochs")) << steps;
  EXPECT_EQ(data_error({.epochs = 1'000'000'000,
                        .max_steps = 1000,
                        .batch_size = 12,
                        .rate = {.kind = optim::ScheduleOptions::Kind::Step, .step_epochs = 1e-3}}),
            "");
  const std::string cosines =
      data_error({.epochs = 1'000'000'000,
                  .batch_size = 12,
                  .rate = {.kind = optim::ScheduleOptions::Kind::CosineRestarts, .restart_epochs = 1e-3}});
  EXPECT_TRUE(has(cosines, "--restart-epochs is 0.001 in a run of 1e+09 epochs")) << cosines;
}

TEST(Validate, WhatIsLostByRoundingToTheTypeOfTheWeightsIsRefused) {
  EXPECT_EQ(validation_error({.rate = {.peak = 1e-320}}),
            "[options] --lr is 1e-320, which is 0 in f32, the type of weights with --precision f32; expected a number "
            "above 0 that stays so when it is rounded, or --precision f64");
  EXPECT_TRUE(has(validation_error({.precision = Precision::BF16, .trainer = {.update = {.weight_decay = 1e-300}}}),
                  "--weight-decay is 1e-300"));
  EXPECT_TRUE(has(validation_error({.optimizer = {.rule = optim::Rule::Adam, .adam = {.epsilon = 1e-300}}}),
                  "--eps is 1e-300, which is 0 in f32"));
  EXPECT_TRUE(has(validation_error({.trainer = {.clip_norm = 1e-300}}), "--clip-norm is 1e-300, which is 0 in f32"));
  EXPECT_TRUE(has(validation_error({.rate = {.peak = 1e-3, .minimum = 1e-60}}), "--min-lr is 1e-60"));
  EXPECT_TRUE(has(validation_error({.label_smoothing = 1e-60}), "--label-smoothing is 1e-60"));
  EXPECT_TRUE(has(validation_error({.optimizer = {.sgd = {.momentum = 1 - 1e-12}}}), ", which is 1 in f32"));
  EXPECT_TRUE(has(validation_error({.optimizer = {.rule = optim::Rule::Adam, .adam = {.beta2 = 1 - 1e-12}}}),
                  ", which is 1 in f32"));
  EXPECT_TRUE(has(validation_error({.trainer = {.update = {.weight_decay = 1e60}}}, 1), "--weight-decay is 1e+60"))
      << "more than any number";
  EXPECT_EQ(validation_error({.precision = Precision::F64, .rate = {.peak = 1e-320}}), "");
  EXPECT_EQ(validation_error({.rate = {.peak = 1e-30}, .trainer = {.update = {.weight_decay = 0}, .clip_norm = 0}}),
            "");
}

TEST(Validate, AnAverageIsOneThatARunCanHave) {
  EXPECT_TRUE(has(validation_error({.trainer = {.average = {.ema = 1}}}), "--ema is 1"));
  EXPECT_TRUE(has(validation_error({.trainer = {.average = {.ema = 0.9, .swa_start = 2}}}),
                  "--ema is 0.9 and --swa-start 2, expected one of the two"));
  EXPECT_TRUE(has(validation_error({.epochs = 3, .trainer = {.average = {.swa_start = 4}}}),
                  "--swa-start is 4, expected at most --epochs 3"));
  EXPECT_EQ(validation_error({.epochs = 0, .max_steps = 9, .trainer = {.average = {.swa_start = 4}}}), "");
}

TEST(Validate, AMeanOfWeightsHasTheEndOfAnEpoch) {
  // Three updates in an epoch.
  const auto error = [](std::int64_t start, std::int64_t steps, const TrialOptions& trial = {}, bool streams = false) {
    Options options{.epochs = 0, .max_steps = steps, .batch_size = 10};
    options.stream.steps_per_epoch = 3;
    options.trial = trial;
    options.trainer.average.swa_start = start;
    std::string text;
    try {
      streams ? validate_stream(options, 1) : validate_data(options, 1, 30);
    } catch (const Error& refused) {
      text = refused.what();
    }
    return text;
  };
  EXPECT_EQ(error(3, 9), "");
  EXPECT_EQ(error(4, 11),
            "[options] --swa-start is 4 in a run of 3.66667 epochs (--max-steps 11), expected at most 3: no weights "
            "would join the mean");
  EXPECT_TRUE(has(error(1, 2), "--swa-start is 1 in a run of 0.666667 epochs (--max-steps 2), expected at most 0"));
  EXPECT_EQ(error(0, 2), "");
  EXPECT_EQ(error(4, 11, {.overfit_batches = 2}), "") << "two updates in an epoch";
  EXPECT_EQ(error(4, 11, {.find_lr = true}), "") << "a trial of its own";
  EXPECT_EQ(error(4, 11, {}, true), "") << "the stream may end in the fourth epoch";
  EXPECT_TRUE(has(error(5, 11, {}, true), "--swa-start is 5"));
}

TEST(Validate, ARunThatTrainsNothingHasTheWeightsOfOneFile) {
  Options options{.epochs = 1};
  options.weights = "weights.h5";
  options.checkpoints.resume = "auto";
  EXPECT_EQ(validation_error(options), "") << "a training, whose first start has no checkpoint";
  options.evaluate_only = true;
  EXPECT_EQ(validation_error(options),
            "[options] --weights is weights.h5 and --resume auto with --evaluate-only, expected one of the two: the "
            "weights are those of one file");
}

TEST(Validate, APredictionIsOfTheSampleInItsRow) {
  Options options{.epochs = 1};
  options.weights = "weights.h5";
  options.predict = "p.csv";
  EXPECT_EQ(validation_error(options), "");
  options.dataset.samples.unreadable = data::Unreadable::Replace;
  EXPECT_EQ(validation_error(options),
            "[options] --unreadable is replace with --predict, expected stop: the file would have the prediction of "
            "another sample in the row of one that cannot be read");
  options.predict.clear();
  EXPECT_EQ(validation_error(options), "") << "a training";
  options.evaluate_only = true;
  EXPECT_EQ(validation_error(options), "");
}

TEST(Validate, NormsNeedTheWholeGradient) {
  const ParallelOptions local{.local_steps = 2};
  EXPECT_TRUE(has(validation_error({.optimizer = {.rule = optim::Rule::Lamb}, .trainer = {.parallel = local}}),
                  "--optimizer lamb with --local-steps"));
  EXPECT_TRUE(has(validation_error({.trainer = {.update = {.clip_layer_norm = 1}, .parallel = local}}),
                  "--clip-layer-norm is 1 with --local-steps"));
  EXPECT_EQ(validation_error({.trainer = {.update = {.clip_value = 1}, .parallel = local}}), "");
  EXPECT_TRUE(
      has(validation_error({.trainer = {.clip_norm = 1, .parallel = local}}), "--clip-norm is 1 with --local-steps"));
  EXPECT_TRUE(has(validation_error({.trainer = {.parallel = local, .guards = {.action = GuardAction::Skip}}}),
                  "--guard-action is skip with --local-steps"));
  EXPECT_EQ(validation_error({.trainer = {.parallel = local, .guards = {.action = GuardAction::Log}}}), "");
  EXPECT_TRUE(has(validation_error({.trainer = {.noise_scale = true}}, 1), "--noise-scale with 1 rank and --shards 0"));
  EXPECT_EQ(validation_error({.trainer = {.shards = 2, .noise_scale = true}}, 1), "");
  EXPECT_EQ(validation_error({.trainer = {.noise_scale = true}}, 2), "");
  EXPECT_TRUE(has(validation_error({.trainer = {.noise_scale = true, .parallel = {.topk = 0.1}}}, 2),
                  "--noise-scale with --local-steps or --topk"));
}

TEST(Validate, AMarginIsShorterThanItsLimit) {
  for (const char* margin : {"2m", "3m"})
    EXPECT_TRUE(has(validation_error({.time = {.limit = "2m", .margin = margin}}),
                    formatted("--time-margin is {} with --time-limit 2m, expected less", margin)));
  EXPECT_EQ(validation_error({.time = {.limit = "2m", .margin = "119s"}}), "");
  for (const char* limit : {"auto", "none"})
    EXPECT_EQ(validation_error({.time = {.limit = limit, .margin = "3m"}}), "");
}

TEST(Validate, ATraceIsNoFileOfTheRun) {
  const auto error = [](const std::string& trace) {
    return validation_error(parse_line({"--output", "runs/a/", "--trace", trace.c_str()}).options, 1);
  };
  for (const std::string name : {"metrics.jsonl", "run.json", "./checkpoints/step-0000000016.h5", "logs/rank-0000.log"})
    EXPECT_TRUE(has(error("runs/a/" + name), "where the run writes a file of its own")) << name;
  for (const std::string trace : {"runs/a/trace.json", "runs/a/../metrics.jsonl", "trace.json", "runs/ab/run.json"})
    EXPECT_EQ(error(trace), "") << trace;
}

TEST(Validate, PartsOfABatchHaveSamples) {
  EXPECT_EQ(
      validation_error({.trainer = {.shards = 1'000'000}}),
      "[options] --shards is 1000000 with a global batch of 64 samples, expected at most one shard per sample (or "
      "0, for none)");
  EXPECT_EQ(validation_error({.batch_size = 0, .global_batch = 9, .trainer = {.shards = 9}}, 3), "");
  const std::string micro = validation_error({.batch_size = 0, .global_batch = 9, .trainer = {.accumulate = 4}}, 3);
  EXPECT_TRUE(has(micro,
                  "--accumulate is 4 with a global batch of 9 samples in 3 parts (ranks or shards), expected at "
                  "most 3"))
      << micro;
  EXPECT_EQ(validation_error({.batch_size = 0, .global_batch = 9, .trainer = {.accumulate = 3}}, 3), "");
  EXPECT_EQ(validation_error({.batch_size = 0, .global_batch = 2}, 3), "") << "a rank may have none";
}

TEST(Validate, Contradictions) {
  const std::string batch = validation_error({.batch_size = 16, .global_batch = 100}, 4);
  for (const char* part : {"--batch-size 16", "--global-batch is 100", "4 ranks", "64"}) {
    EXPECT_TRUE(has(batch, part)) << batch;
  }
  EXPECT_EQ(validation_error({.batch_size = 16, .global_batch = 128, .trainer = {.accumulate = 2}}, 4), "");
  EXPECT_TRUE(has(validation_error({.batch_size = 0}), "--global-batch"));
  EXPECT_TRUE(
      has(validation_error({.eval_every = 0, .patience = {.evaluations = 2}}), "--patience is 2 with --eval-every 0"));
  const std::string shards = validation_error({.trainer = {.shards = 3}}, 4);
  EXPECT_TRUE(has(shards, "--shards is 3 with 4 ranks")) << shards;
  EXPECT_EQ(validation_error({.trainer = {.shards = 4}}, 3), "");
  EXPECT_EQ(validation_error({.trainer = {.shards = 4, .accumulate = 2}}), "");
  const std::string sync =
      validation_error({.trainer = {.shards = 4, .compile = {.synchronisation = {.all_norms = true}}}}, 2);
  EXPECT_TRUE(has(sync, "--sync-bn with --shards 4 and 2 ranks, expected as many shards as ranks")) << sync;
  EXPECT_EQ(validation_error({.trainer = {.shards = 4, .compile = {.synchronisation = {.all_norms = true}}}}, 4), "");
  EXPECT_EQ(validation_error({.trainer = {.compile = {.synchronisation = {.all_norms = true}}}}, 3), "");
  EXPECT_TRUE(
      has(validation_error({.optimizer = {.sgd = {.momentum = 0, .nesterov = true}}}), "--nesterov with --momentum 0"));
  EXPECT_TRUE(has(validation_error({.optimizer = {.rule = optim::Rule::Adam, .sgd = {.nesterov = true}}}),
                  "--nesterov with --optimizer adam"));
  EXPECT_TRUE(has(validation_error({.epochs = 0}), "--epochs and --max-steps are both 0"));
  EXPECT_EQ(validation_error({.epochs = 0, .max_steps = 5}), "");
  EXPECT_TRUE(has(validation_error({.epochs = 2, .rate = {.warmup_epochs = 3}}), "--warmup-epochs is 3"));
  EXPECT_TRUE(
      has(validation_error({.rate = {.warmup_epochs = 1, .warmup_start = 0}}), "--warmup-start is 0, expected a"));
  EXPECT_TRUE(has(validation_error({.rate = {.kind = optim::ScheduleOptions::Kind::OneCycle, .warmup_epochs = 1}}),
                  "one-cycle"));
  EXPECT_TRUE(has(validation_error({.rate = {.peak = 0.1, .minimum = 0.2}}), "--min-lr is 0.2"));
  const auto scaled = [](double minimum) {
    return validation_error({.batch_size = 0,
                             .global_batch = 64,
                             .rate = {.peak = 0.1, .minimum = minimum, .scaled = true, .scale_batch = 32}});
  };
  EXPECT_EQ(scaled(0.2), "");
  EXPECT_TRUE(has(scaled(0.3),
                  "--min-lr is 0.3, expected at most 0.2, which --scale-lr makes of --lr 0.1 for a global batch of 64"))
      << scaled(0.3);
  EXPECT_TRUE(has(validation_error({.rate = {.kind = optim::ScheduleOptions::Kind::Plateau}, .eval_every = 0}),
                  "--schedule plateau with --eval-every 0"));
  EXPECT_TRUE(has(validation_error({.dataset = {.limit_train = 10}}, 2), "--limit-train is 10"));
  EXPECT_TRUE(has(validation_error({.output = ""}), "--output is empty"));
}

TEST(Validate, AGlobalBatchFitsTheData) {
  EXPECT_NO_THROW(validate_data({.batch_size = 50}, 2, 100));
  try {
    validate_data({.dataset = {.name = "digits"}, .batch_size = 51}, 2, 100);
    FAIL() << "102 samples of 100";
  } catch (const Error& error) {
    for (const char* part : {"--batch-size is 51", "2 ranks", "102", "100 training samples", "digits"}) {
      EXPECT_TRUE(has(error.what(), part)) << error.what();
    }
  }
  EXPECT_THROW(validate_data({.batch_size = 0, .global_batch = 101}, 2, 100), Error);
}

}  // namespace
}  // namespace lockstep::train
