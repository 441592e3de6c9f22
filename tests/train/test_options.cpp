#include "lockstep/train/options/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

TEST(Options, EveryOptionIsReadFromTheCommandLine) {
  const Outcome o = parse_line({"--dataset",
                                "cifar100",
                                "--data-dir",
                                "d",
                                "--epochs",
                                "7",
                                "--max-steps",
                                "70",
                                "--batch-size",
                                "8",
                                "--global-batch",
                                "32",
                                "--accumulate",
                                "2",
                                "--shards",
                                "0",
                                "--optimizer",
                                "sgd",
                                "--lr",
                                "0.25",
                                "--momentum",
                                "0.5",
                                "--weight-decay",
                                "5e-4",
                                "--nesterov",
                                "--schedule",
                                "step",
                                "--step-gamma",
                                "0.2",
                                "--milestones",
                                "3,5.5",
                                "--warmup-epochs",
                                "0.5",
                                "--warmup-start",
                                "0.25",
                                "--scale-lr",
                                "--scale-lr-batch",
                                "128",
                                "--no-decay-norm-bias",
                                "--label-smoothing",
                                "0.1",
                                "--augment",
                                "--seed",
                                "18446744073709551615",
                                "--threads",
                                "3",
                                "--loaders",
                                "2",
                                "--output",
                                "o",
                                "--resume",
                                "auto",
                                "--checkpoint-every",
                                "4",
                                "--checkpoint-every-steps",
                                "5",
                                "--keep",
                                "6",
                                "--eval-every",
                                "8",
                                "--patience",
                                "2",
                                "--log-every",
                                "9",
                                "--limit-train",
                                "1000",
                                "--limit-eval",
                                "11",
                                "--weights",
                                "w.h5",
                                "--precision",
                                "f64",
                                "--sync-bn",
                                "--quiet",
                                "--profile",
                                "--depth",
                                "32"});
  ASSERT_TRUE(o.result.proceed) << o.err;
  const nlohmann::json expected = {{"dataset", "cifar100"},
                                   {"data-dir", "d"},
                                   {"epochs", 7},
                                   {"max-steps", 70},
                                   {"batch-size", 8},
                                   {"global-batch", 32},
                                   {"accumulate", 2},
                                   {"shards", 0},
                                   {"sync-bn", true},
                                   {"optimizer", "sgd"},
                                   {"lr", 0.25},
                                   {"momentum", 0.5},
                                   {"weight-decay", 5e-4},
                                   {"nesterov", true},
                                   {"schedule", "step"},
                                   {"step-gamma", 0.2},
                                   {"milestones", {3.0, 5.5}},
                                   {"warmup-epochs", 0.5},
                                   {"warmup-start", 0.25},
                                   {"scale-lr", true},
                                   {"scale-lr-batch", 128},
                                   {"no-decay-norm-bias", true},
                                   {"label-smoothing", 0.1},
                                   {"augment", true},
                                   {"seed", 18446744073709551615ull},
                                   {"threads", 3},
                                   {"loaders", 2},
                                   {"output", "o"},
                                   {"resume", "auto"},
                                   {"checkpoint-every", 4},
                                   {"checkpoint-every-steps", 5},
                                   {"keep", "6"},
                                   {"eval-every", 8},
                                   {"patience", 2},
                                   {"log-every", 9},
                                   {"limit-train", 1000},
                                   {"limit-eval", 11},
                                   {"weights", "w.h5"},
                                   {"precision", "f64"},
                                   {"quiet", true},
                                   {"profile", true}};
  const auto json = to_json(o.options);
  for (const auto& item : expected.items()) EXPECT_EQ(json.at(item.key()), item.value()) << item.key();
  EXPECT_EQ(o.depth, 32);
  EXPECT_EQ(validation_error(o.options), "");
}

TEST(Options, DefaultsAreTheProgramsAndValid) {
  const Outcome o = parse_line({}, {.epochs = 3, .rate = {.peak = 0.5}});
  EXPECT_TRUE(o.result.proceed);
  EXPECT_EQ(o.options.epochs, 3);
  EXPECT_EQ(o.options.rate.peak, 0.5);
  EXPECT_EQ(validation_error(o.options, 1), "");
  EXPECT_EQ(validation_error(o.options, 64), "");
}

TEST(Options, AugmentCanBeTurnedOff) {
  EXPECT_FALSE(parse_line({"--no-augment"}, {.dataset = {.augment = true}}).options.dataset.augment);
  EXPECT_TRUE(parse_line({"--augment"}).options.dataset.augment);
}

TEST(Options, HelpListsGroupsAndDefaults) {
  const Outcome o =
      parse_line({"--help"}, {.dataset = {.name = "digits"}, .rate = {.peak = 0.0625, .milestones = {3, 4}}});
  EXPECT_FALSE(o.result.proceed);
  EXPECT_EQ(o.result.exit_code, 0);
  for (const char* group : {"Data:", "Training:", "Optimiser:", "Learning rate:", "Ranks:", "Run:", "Model:"}) {
    EXPECT_TRUE(has(o.out, group)) << group;
  }
  const auto options = to_json(Options{});
  for (const auto& item : options.items()) EXPECT_TRUE(has(o.out, "--" + item.key())) << item.key();
  for (const char* part : {"--config", "--no-augment", "(default 0.0625)", "(default 3,4)", "(default off)",
                           "(default digits)", "samples per rank"}) {
    EXPECT_TRUE(has(o.out, part)) << part << "\n" << o.out;
  }
}

TEST(Options, HelpNamesEachDefaultOnce) {
  const std::string help = parse_line({"--help"}).out;
  std::size_t defaults = 0;
  for (std::size_t at = 0; (at = help.find("(default", at)) != std::string::npos; ++at) ++defaults;
  EXPECT_EQ(defaults, to_json(Options{}).size() + 2);  // and --config, and --depth of the program itself
}

TEST(Options, OnlyRankZeroPrintsAndAllRanksLeave) {
  for (const char* flag : {"--help", "--version"}) {
    const Outcome o = parse_line({flag}, {}, false);
    EXPECT_FALSE(o.result.proceed);
    EXPECT_EQ(o.result.exit_code, 0);
    EXPECT_EQ(o.out + o.err, "");
  }
  EXPECT_TRUE(has(parse_line({"--version"}).out, "lockstep 1.2.3"));
  const Outcome wrong = parse_line({"--no-such"}, {}, false);
  EXPECT_EQ(wrong.result.exit_code, 2);
  EXPECT_EQ(wrong.out + wrong.err, "");
  EXPECT_TRUE(has(wrong.result.message, "--no-such"));
}

TEST(Options, ParseErrorsNameTheOption) {
  const std::vector<std::vector<const char*>> lines = {
      {"--epochs", "many"}, {"--lr", "0.1x"}, {"--epochs", "1.5"}, {"--seed", "-1"}, {"--batch-size", "010"}, {"--lr"}};
  for (const auto& line : lines) {
    const Outcome o = parse_line(line);
    EXPECT_FALSE(o.result.proceed) << line[0];
    EXPECT_EQ(o.result.exit_code, 2);
    EXPECT_EQ(o.out, "");
    EXPECT_TRUE(has(o.err, line[0])) << o.err;
  }
}

TEST(Options, AProgramsOwnOptionNeedsAFreeName) {
  std::int64_t value = 3;
  bool flag = false;
  const auto outcome = [&](const std::vector<OptionRow>& rows) {
    Outcome o;
    CommandLine line(o.options, "train_test", "trains", "lockstep 1.2.3");
    for (const OptionRow& row : rows) line.add(row);
    const std::vector<const char*> arguments{"train_test"};
    std::ostringstream out, err;
    o.result = line.parse(1, arguments.data(), true, out, err);
    o.err = err.str();
    return o;
  };
  const auto number = [&](const std::string& name) {
    return OptionRow{.name = name, .value = option_value(value), .argument = "N", .text = "a number"};
  };
  EXPECT_TRUE(outcome({number("depth"), number("width")}).result.proceed);
  for (const std::string name : {"lr", "help", "version", "config", "no-augment", "a b", "x=y", ""}) {
    const Outcome o = outcome({number("depth"), number(name)});
    EXPECT_FALSE(o.result.proceed) << name;
    EXPECT_EQ(o.result.exit_code, 2) << name;
    EXPECT_TRUE(has(o.err, "train_test: [options] --" + name + " cannot be an option of the program's own: ")) << o.err;
  }
  const OptionRow twice{.name = "depth", .value = option_value(flag), .argument = "", .text = "deep or not"};
  EXPECT_TRUE(has(outcome({number("depth"), twice}).result.message, "--depth cannot be")) << "given twice";
}

TEST(Options, ADefaultWarmUpIsNoLongerThanTheRun) {
  const Options defaults{.epochs = 90, .rate = {.warmup_epochs = 5}};
  const Outcome small = parse_line({"--epochs", "3"}, defaults);
  EXPECT_TRUE(small.result.proceed) << small.err;
  EXPECT_EQ(small.options.rate.warmup_epochs, 3);
  EXPECT_EQ(small.options.usual_warm_up, 5);
  EXPECT_EQ(validation_error(small.options), "");
  const Outcome whole = parse_line({"--epochs", "5"}, defaults);
  EXPECT_EQ(whole.options.rate.warmup_epochs, 5);
  EXPECT_EQ(whole.options.usual_warm_up, 0);
  EXPECT_EQ(parse_line({"--epochs", "0", "--max-steps", "2"}, defaults).options.rate.warmup_epochs, 5);
  const Outcome cycle = parse_line({"--schedule", "one-cycle", "--epochs", "3"}, defaults);
  EXPECT_EQ(cycle.options.rate.warmup_epochs, 0) << "it has a rise of its own, as OneCycleLR";
  EXPECT_EQ(cycle.options.usual_warm_up, 0);
  EXPECT_EQ(validation_error(cycle.options), "");
  EXPECT_TRUE(has(validation_error(parse_line({"--schedule", "one-cycle", "--warmup-epochs", "2"}, defaults).options),
                  "--warmup-epochs is 2 with --schedule one-cycle, expected 0"));
  const Outcome given = parse_line({"--epochs", "3", "--warmup-epochs", "5"}, defaults);
  EXPECT_EQ(given.options.usual_warm_up, 0);
  EXPECT_TRUE(has(validation_error(given.options), "--warmup-epochs is 5, expected at most --epochs 3"));
  Options predicts = given.options;
  predicts.weights = "run";
  predicts.predict = "predictions.h5";
  EXPECT_FALSE(has(validation_error(predicts), "--warmup-epochs"));
}

TEST(Canonical, RanksMayDifferInWhatBelongsToTheNode) {
  const std::string text =
      canonical({.dataset = {.dir = "a"}, .threads = 4, .loaders = 1, .output = "x", .quiet = true, .profile = true});
  EXPECT_EQ(text, canonical({.dataset = {.dir = "b"}, .threads = 2, .loaders = 0, .output = "y"}));
  EXPECT_NE(text, canonical({.seed = 2}));
  EXPECT_NE(text, canonical({}, R"({"depth": 20})"));
}

TEST(Canonical, DifferencesNameTheOption) {
  const auto lines =
      differences(canonical({.rate = {.peak = 0.1}}, R"({"depth": 20})"),
                  canonical({.rate = {.peak = 0.30000000000000004}}, R"({"depth": 32, "stem": "cifar"})"), "on rank 0",
                  "on rank 1");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "--depth: 20 on rank 0, 32 on rank 1");
  EXPECT_EQ(lines[1], "--lr: 0.1 on rank 0, 0.30000000000000004 on rank 1");
  EXPECT_EQ(lines[2], "--stem: not an option on rank 0, \"cifar\" on rank 1");
  EXPECT_TRUE(differences(canonical({}), canonical({}), "a", "b").empty());
}

}  // namespace
}  // namespace lockstep::train
