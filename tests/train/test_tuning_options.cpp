// The texts of --freeze, --lr-scale and --no-decay, what contradicts trials, and the table of a range test.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/train/callbacks/find_rate.h"
#include "lockstep/train/run/trials.h"
#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

TEST(TuningOptions, PatternsAreReadInTheirOrder) {
  EXPECT_TRUE(freeze_patterns({}).empty());
  EXPECT_EQ(freeze_patterns({.freeze = "conv1.*,layer?.0.*"}), (std::vector<std::string>{"conv1.*", "layer?.0.*"}));
  const auto groups = rate_groups({.lr_scale = "a=b.*=0.5,*=2e-3"});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].pattern, "a=b.*");
  EXPECT_EQ(groups[0].rate_scale, 0.5);
  EXPECT_FALSE(groups[0].weight_decay);
  EXPECT_EQ(groups[1].pattern, "*");
  EXPECT_EQ(groups[1].rate_scale, 2e-3);
  const auto spared = decay_groups({.no_decay = "a.*,b"});
  ASSERT_EQ(spared.size(), 2U);
  EXPECT_EQ(spared[1].pattern, "b");
  EXPECT_EQ(spared[1].weight_decay, 0);
  EXPECT_FALSE(spared[1].rate_scale);
}

TEST(TuningOptions, WrongTextsAreNamed) {
  for (const char* text : {",", "a,", ",a", "a,,b"}) {
    EXPECT_TRUE(has(validation_error({.tuning = {.freeze = text}}), formatted("--freeze is '{}'", text))) << text;
    EXPECT_TRUE(has(validation_error({.tuning = {.no_decay = text}}), formatted("--no-decay is '{}'", text))) << text;
  }
  for (const char* text : {"a", "=2", "a=", "a=x", "a=0", "a=-1", "a=1x", "a=inf", "a=nan", "a=1,b"}) {
    const std::string error = validation_error({.tuning = {.lr_scale = text}});
    EXPECT_TRUE(has(error, "--lr-scale has the part '")) << text << ": " << error;
  }
  EXPECT_TRUE(has(validation_error({.tuning = {.replace_head = true}}), "--replace-head without --weights"));
}

TEST(TrialOptions, ThatContradictEachOtherAreNamed) {
  const TrialOptions find{.find_lr = true};
  EXPECT_EQ(validation_error({.trial = find}), "");
  EXPECT_TRUE(
      has(validation_error({.trial = find, .checkpoints = {.resume = "auto"}}), "--find-lr with --resume auto"));
  EXPECT_TRUE(
      has(validation_error({.trial = {.find_lr = true, .lr_range = {1}}}), "--find-lr-range is 1, expected two"));
  EXPECT_TRUE(has(validation_error({.trial = {.find_lr = true, .lr_range = {1, 0.1}}}), "--find-lr-range is 1,0.1"));
  EXPECT_TRUE(has(validation_error({.trial = {.find_lr = true, .lr_steps = 9}}), "--find-lr-steps is 9"));
  EXPECT_TRUE(has(validation_error({.trial = {.lr_steps = 50}}), "have no effect without --find-lr"));
  EXPECT_TRUE(has(validation_error({.trial = find, .onnx = "m.onnx"}, 1), "--find-lr with --onnx"));
  EXPECT_TRUE(has(validation_error({.trial = find, .predict = "p.h5"}, 1), "--find-lr with --predict"));
  const Outcome o = parse_line({"--find-lr", "--find-lr-range", "1e-5,2"});
  EXPECT_TRUE(o.result.proceed) << o.err;
  EXPECT_EQ(o.options.trial.lr_range, (std::vector<double>{1e-5, 2}));
}

TEST(TrialOptions, ARangeTestIsARunOfItsOwn) {
  Options options{.rate = {.peak = 0.3, .warmup_epochs = 2, .scaled = true, .scale_batch = 64}, .output = "runs/x"};
  const Options before = options;
  settle_trials(options);
  EXPECT_EQ(options.output, "runs/x");
  EXPECT_EQ(options.rate.peak, before.rate.peak);
  options.trial = {.find_lr = true, .lr_steps = 70};
  settle_trials(options);
  EXPECT_EQ(options.output, "runs/x/find-lr");
  EXPECT_EQ(options.max_steps, 70);
  EXPECT_EQ(options.epochs + options.eval_every + options.checkpoints.every_epochs, 0);
  EXPECT_EQ(options.rate.warmup_epochs, 0);
  EXPECT_EQ(options.rate.scale_batch, 64);
  EXPECT_NO_THROW(validate(options, 1));
}

optim::RateTest::Result result_of(int steps) {
  optim::RateTest test(1e-3, 10, steps);
  while (!test.is_over()) test.add(test.next_rate() < 1 ? 2 - test.next_rate() : 100 * test.next_rate());
  return test.result();
}

TEST(RateTable, HasTheMarkedRowsTheVerdictAndAllNumbers) {
  const optim::RateTest::Result result = result_of(200);
  ASSERT_TRUE(result.steepest);
  const std::string table = rate_table(result, 2);
  EXPECT_TRUE(has(table, "  <- falls most steeply\n")) << table;
  EXPECT_TRUE(has(table, "  <- lowest")) << table;
  EXPECT_TRUE(has(table, "the loss diverged; it was lowest at ")) << table;
  EXPECT_TRUE(has(table, formatted("try --lr {:.2g}", 2 * result.rows[*result.steepest].rate))) << table;
  EXPECT_LT(std::count(table.begin(), table.end(), '\n'), 27);

  const nlohmann::json json = nlohmann::json::parse(rate_json(result, 2));
  EXPECT_EQ(json["suggestion"], 2 * result.rows[*result.steepest].rate);
  EXPECT_EQ(json["loss"].size(), result.rows.size());
  EXPECT_EQ(json["smoothed_loss"][3], result.rows[3].smoothed);
  const std::string csv = rate_csv(result);
  EXPECT_TRUE(csv.starts_with("step,learning_rate,loss,smoothed_loss\n1,0.001,1.999,")) << csv.substr(0, 80);
}

TEST(RateTable, WithoutADescentSaysSo) {
  optim::RateTest test(1e-3, 1, 10);
  while (!test.is_over()) test.add(1);
  const std::string table = rate_table(test.result(), 1);
  EXPECT_TRUE(has(table, "the test ended at its last rate, and no rate lowered it: no suggestion")) << table;
  EXPECT_TRUE(nlohmann::json::parse(rate_json(test.result(), 1))["suggestion"].is_null());
  EXPECT_TRUE(has(rate_table({}, 1), "0 steps"));
}

}  // namespace
}  // namespace lockstep::train
