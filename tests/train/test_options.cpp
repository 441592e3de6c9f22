#include "lockstep/train/options/options.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

std::string write_config(const std::string& text) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string path = testing::TempDir() + "lockstep_" + test->name() + ".toml";
  std::ofstream(path) << text;
  return path;
}

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

TEST(Options, ConfigFileIsReadAndTheCommandLineComesFirst) {
  const std::string path = write_config(
      "# as on the command line\nepochs = 4\nlr = 0.2\nnesterov = true\naugment = false\nschedule = \"step\"\n"
      "milestones = [2, 3]\ndepth = 44\n");
  const Outcome o = parse_line({"--config", path.c_str(), "--lr", "0.3"}, {.dataset = {.augment = true}});
  ASSERT_TRUE(o.result.proceed) << o.err;
  EXPECT_EQ(o.options.epochs, 4);
  EXPECT_EQ(o.options.rate.peak, 0.3);
  EXPECT_TRUE(o.options.optimizer.sgd.nesterov);
  EXPECT_FALSE(o.options.dataset.augment);
  EXPECT_EQ(o.options.rate.milestones, (std::vector<double>{2, 3}));
  EXPECT_EQ(o.depth, 44);
}

TEST(Options, ConfigFileErrorsNameKeyOrFile) {
  const Outcome unknown = parse_line({"--config", write_config("epochz = 4\n").c_str()});
  EXPECT_EQ(unknown.result.exit_code, 2);
  EXPECT_TRUE(has(unknown.err, "unknown key epochz, did you mean epochs?")) << unknown.err;
  const Outcome section = parse_line({"--config", write_config("[Training]\nepochs = 4\n").c_str()});
  EXPECT_EQ(section.result.exit_code, 2);
  EXPECT_TRUE(has(section.err, "line 1: section [Training], expected only keys")) << section.err;
  const Outcome missing = parse_line({"--config", "/no/such.toml"});
  EXPECT_EQ(missing.result.exit_code, 2);
  EXPECT_TRUE(has(missing.err, "/no/such.toml")) << missing.err;
}

TEST(Options, AConfigFileSaysEachKeyOnceWithOneValue) {
  for (const auto& [text, key] : {std::pair{"lr = 0,1\n", "key lr has 2 values"},
                                  {"lr = [1, 2]\n", "key lr has 2 values"},
                                  {"output = two words\n", "key output has 2 values"},
                                  {"lr = 1\nlr = 2\n", "key lr occurs twice"},
                                  {"lr = 1\nepochs = 4\n\"lr\" = 2\n", "key lr occurs twice"},
                                  {"milestones = [1]\nmilestones = [2]\n", "key milestones occurs twice"}}) {
    const std::string path = write_config(text);
    const Outcome o = parse_line({"--config", path.c_str()});
    EXPECT_EQ(o.result.exit_code, 2) << text;
    EXPECT_TRUE(has(o.err, path) && has(o.err, key)) << o.err;
  }
  const Outcome quoted = parse_line({"--config", write_config("keep = \"last:3,every:10\"\noutput = 'a b'\n").c_str()});
  EXPECT_EQ(quoted.options.checkpoints.keep, "last:3,every:10") << quoted.err;
  EXPECT_EQ(quoted.options.output, "a b");
}

TEST(Options, WhatIsWrongInAConfigFileHasFileLineKeyAndExpectation) {
  for (const auto& [text, expected] :
       {std::pair{"# one\n\nepochs = x\n", ", line 3: key epochs is x, expected a whole number"},
        {"\npatience = \"3\"\n", ", line 2: key patience is the text \"3\", expected a number, without quotes"},
        {"lr = '0.1'\n", ", line 1: key lr is the text \"0.1\", expected a number, without quotes"},
        {"depth = \"20\"\n", ", line 1: key depth is the text \"20\", expected a number, without quotes"},
        {"milestones = [1,\n'2']\n", ", line 1: key milestones is the text \"2\", expected a number, without quotes"},
        {"patience = true\n", ", line 1: key patience is true, expected a whole number"},
        {"patience = 3.5\n", ", line 1: key patience is 3.5, expected a whole number"},
        {"lr = true\n", ", line 1: key lr is true, expected a number"},
        {"quiet = \"true\"\n", ", line 1: key quiet is the text \"true\", expected true or false, without quotes"},
        {"quiet = 0.5\n", ", line 1: key quiet is 0.5, expected true or false"},
        {"output = true\n", ", line 1: key output is the switch true, expected a text"},
        {"optimizer = false\n", ", line 1: key optimizer is the switch false, expected a text"},
        {"optimizer = 'RMSProp'\n", "radam, lion, lars, lamb; did you mean rmsprop?"},
        {"lr = 0\n", ", line 1: key lr is 0, expected a number above 0"},
        {"epochs = 4\n\"momentum\" = 1\n", ", line 2: key momentum is 1, expected a number at least 0 and below 1"},
        {"optimizer = 'muon'\n", ", line 1: key optimizer is 'muon', expected one of sgd, adam, adamw, rmsprop"},
        {"\n\nnesterov = true\noptimizer = 'adam'\n", ", line 3: key nesterov is for --optimizer sgd"},
        {"depth = many\n", ", line 1: key depth is many, expected a whole number"},
        {"quiet = perhaps\n", ", line 1: key quiet is perhaps, expected true or false"},
        {"quiet\n", ", line 1: 'quiet' has no value, expected KEY = VALUE"},
        {"lr =\n", ", line 1: key lr has no value"},
        {"milestones = []\n", ", line 1: key milestones has an empty list, expected a value"},
        {"milestones = [1,\n2\n", "line 3: key milestones: a list without its closing ]"},
        {"output = \"runs\n", ", line 1: key output: a text without its closing \""},
        {"output = 'a' b\n", ", line 1: key output: 'b' follows its value"},
        {"help = true\n", ", line 1: unknown key help"},
        {"config = 'other.toml'\n", ", line 1: unknown key config"},
        {"epochs = 1\n++ = 1\n", ", line 2: unknown key ++"},
        {"training.lr = 1\n", ", line 1: unknown key training.lr"},
        {"batch_size = 1\nzeta = 2\nLR = 3\n",
         ", line 1: unknown key batch_size, did you mean batch-size?; line 2: unknown key zeta; line 3: unknown key "
         "LR, "
         "did you mean lr?; expected names of options"}}) {
    const std::string path = write_config(text);
    const Outcome o = parse_line({"--config", path.c_str()});
    EXPECT_EQ(o.result.exit_code, 2) << text;
    EXPECT_TRUE(has(o.err, "--config: " + path + ", line ") && has(o.err, expected)) << text << o.err;
  }
  // What the command line says itself is not the file's fault.
  const Outcome line = parse_line({"--lr", "0", "--config", write_config("lr = 1\n").c_str()});
  EXPECT_TRUE(has(line.err, "--lr is 0, expected a number above 0") && !has(line.err, "line 1")) << line.err;
}

TEST(Options, AConfigFileSaysAChoiceOnceHoweverItIsSpelled) {
  for (const char* text : {"augment = true\nno-augment = true\n", "augment = false\nno-augment = true\n"}) {
    const Outcome o = parse_line({"--config", write_config(text).c_str()});
    EXPECT_EQ(o.result.exit_code, 2) << text;
    EXPECT_TRUE(has(o.err, ", line 2: key no-augment contradicts key augment of line 1, expected one of the two"))
        << o.err;
  }
  EXPECT_FALSE(parse_line({"--config", write_config("no-augment = true\n").c_str()}, {.dataset = {.augment = true}})
                   .options.dataset.augment);
  // On a command line the last one counts, as of all options: job scripts append to what they were given.
  EXPECT_FALSE(parse_line({"--augment", "--no-augment"}).options.dataset.augment);
  EXPECT_TRUE(parse_line({"--no-augment", "--augment"}).options.dataset.augment);
}

TEST(Options, AConfigFileIsToml) {
  EXPECT_EQ(parse_line({"--config", write_config("keep = 3\nresume = 'true'\n").c_str()}).options.checkpoints.keep,
            "3");
  const std::string path = write_config(
      "\xef\xbb\xbf# comments, lists over lines, texts with marks in them\r\n  output = \"a#b, \\\"c\\\" \\u00e9\"  # "
      "here\r\n"
      "keep = 'last:3,every:10'\nmilestones = [ 1, # one\n 2.5,\n ]\nschedule = step\nquiet = true\n");
  const Outcome o = parse_line({"--config", path.c_str()});
  ASSERT_TRUE(o.result.proceed) << o.err;
  EXPECT_EQ(o.options.output, "a#b, \"c\" \u00e9");
  EXPECT_EQ(o.options.checkpoints.keep, "last:3,every:10");
  EXPECT_EQ(o.options.rate.milestones, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(o.options.rate.kind, optim::ScheduleOptions::Kind::Step);
  EXPECT_TRUE(o.options.quiet);
}

TEST(Options, KeysOfAConfigFileCannotWriteToTheTerminal) {
  const Outcome o = parse_line({"--config", write_config("\x1b[2Jlr\xff = 1\n").c_str()});
  EXPECT_EQ(o.result.exit_code, 2);
  EXPECT_TRUE(has(o.err, "unknown key \\x1b[2Jlr\\xff")) << o.err;
  EXPECT_EQ(o.err.find('\x1b'), std::string::npos);
}

TEST(Options, UnknownOptionsAreNamedInTheirOrderWithWhatWasMeant) {
  const auto said = [](std::vector<const char*> line) {
    const Outcome o = parse_line(std::move(line));
    EXPECT_EQ(o.result.exit_code, 2);
    return o.result.message;
  };
  EXPECT_EQ(
      said({"--zeta", "1", "--batch_size", "8", "--epochs", "3", "--momentun=0.5"}),
      "unknown option --zeta; unknown option --batch_size, did you mean --batch-size?; unknown option --momentun, "
      "did you mean --momentum?");
  EXPECT_EQ(said({"--batch", "8"}), "unknown option --batch, did you mean --batch-size?");
  EXPECT_EQ(said({"--checkpoint", "8"}),
            "unknown option --checkpoint, did you mean --checkpoint-every, --checkpoint-every-steps, "
            "--checkpoint-every-minutes?");
  EXPECT_EQ(said({"--learning-rate", "1"}), "unknown option --learning-rate, did you mean --lr?");
  EXPECT_EQ(said({"--lr-warmup-decay", "1"}), "unknown option --lr-warmup-decay, did you mean --warmup-start?");
  EXPECT_EQ(said({"--dpeth", "20"}), "unknown option --dpeth, did you mean --depth?");  // of the program itself
  EXPECT_EQ(said({"train", "--quiet", "now"}), "unexpected argument 'train'; unexpected argument 'now'");
}

TEST(Options, EveryRangeStandsInTheHelp) {
  const std::string help = parse_line({"--help"}).out;
  const auto text_of = [&](const std::string& option) {  // without line breaks
    const std::size_t begin = help.find("  --" + option + " "), end = help.find("(default", begin);
    std::istringstream words(help.substr(begin, end - begin));
    std::string all, word;
    while (words >> word) all += word + " ";
    return all;
  };
  for (const auto& [option, range] : {std::pair{"momentum", "; at least 0 and below 1"},
                                      {"label-smoothing", "; at least 0 and below 1"},
                                      {"beta1", "; at least 0 and below 1"},
                                      {"cycle-rise", "; above 0 and below 1"},
                                      {"topk", "; at least 0 and at most 1"},
                                      {"guard-warn", "; above 0 and at most 1"},
                                      {"lr", "; above 0"},
                                      {"accumulate", "; at least 1 and at most 100000"},
                                      {"loaders", "; at least -1 and at most 4096"}}) {
    EXPECT_TRUE(has(text_of(option), range)) << text_of(option);
  }
}

TEST(Options, AConfigFileIsARegularFileOfModestSize) {
  for (const std::string& path :
       {std::string("/dev/zero"), testing::TempDir(), write_config(std::string((1 << 20) + 1, '#'))}) {
    const Outcome o = parse_line({"--config", path.c_str()});
    EXPECT_EQ(o.result.exit_code, 2) << path;
    EXPECT_TRUE(has(o.err, path)) << o.err;
  }
}

TEST(Options, WhatDoesNotFitANumberIsAnError) {
  EXPECT_EQ(parse_line({"--seed", "18446744073709551615"}).options.seed, std::numeric_limits<std::uint64_t>::max());
  const Outcome seed = parse_line({"--seed", "18446744073709551616"});
  EXPECT_EQ(seed.result.exit_code, 2);
  EXPECT_TRUE(has(seed.err, "expected a number from 0 to 18446744073709551615")) << seed.err;
  EXPECT_EQ(parse_line({"--epochs", "9223372036854775808"}).result.exit_code, 2);
}

TEST(Options, LeadingZerosAreRefusedInEveryWholeNumber) {
  for (const char* option : {"--seed", "--epochs", "--threads", "--shards", "--trace-steps"}) {
    const Outcome o = parse_line({option, "007"});
    EXPECT_EQ(o.result.exit_code, 2) << option;
    EXPECT_TRUE(has(o.err, "is 007, expected a whole number without leading zeros")) << o.err;
  }
  EXPECT_EQ(parse_line({"--seed", "0"}).options.seed, 0u);
  EXPECT_TRUE(has(parse_line({"--help"}).out, "without leading zeros"));
}

TEST(Options, TheGivenBatchReplacesTheProgramsOther) {
  const Outcome global = parse_line({"--global-batch", "100"}, {.batch_size = 64});
  EXPECT_EQ(global_batch(global.options, 3), 100);
  EXPECT_EQ(validation_error(global.options, 3), "");
  const Outcome local = parse_line({"--batch-size", "10", "--accumulate", "2"}, {.batch_size = 0, .global_batch = 64});
  EXPECT_EQ(global_batch(local.options, 3), 60);
}

TEST(Options, AnotherOptimizerBringsItsRate) {
  EXPECT_EQ(parse_line({"--optimizer", "adamw"}).options.rate.peak, 0.001);
  EXPECT_EQ(parse_line({"--optimizer", "adam", "--lr", "0.01"}).options.rate.peak, 0.01);
  EXPECT_EQ(parse_line({"--optimizer", "adamw"}, {.optimizer = {.rule = optim::Rule::Adam}, .rate = {.peak = 3e-4}})
                .options.rate.peak,
            3e-4);
  EXPECT_EQ(parse_line({"--optimizer", "sgd"}, {.optimizer = {.rule = optim::Rule::Adam}, .rate = {.peak = 3e-4}})
                .options.rate.peak,
            0.1);
}

TEST(Options, AnotherOptimizerBringsItsMomentum) {
  EXPECT_EQ(parse_line({"--optimizer", "rmsprop"}).options.optimizer.sgd.momentum, 0);
  EXPECT_EQ(parse_line({"--optimizer", "rmsprop"}).options.rate.peak, 0.01);
  EXPECT_EQ(parse_line({"--optimizer", "rmsprop", "--momentum", "0.5"}).options.optimizer.sgd.momentum, 0.5);
  const Outcome o = parse_line({"--optimizer", "rmsprop", "--alpha", "0.9", "--centered", "--eps", "1e-6"});
  EXPECT_EQ(o.options.optimizer.rmsprop.alpha, 0.9);
  EXPECT_TRUE(o.options.optimizer.rmsprop.centered);
}

TEST(Options, AnotherOptimizerBringsItsCoefficients) {
  const auto given = [](std::vector<const char*> line) { return parse_line(std::move(line)).options; };
  EXPECT_EQ(given({"--optimizer", "lion"}).optimizer.adam.beta2, 0.99);
  EXPECT_EQ(given({"--optimizer", "lion", "--beta2", "0.9"}).optimizer.adam.beta2, 0.9);
  EXPECT_EQ(given({"--optimizer", "lamb"}).optimizer.adam.epsilon, 1e-6);
  EXPECT_EQ(given({"--optimizer", "adagrad"}).optimizer.adam.epsilon, 1e-10);
  EXPECT_EQ(given({"--optimizer", "adagrad"}).rate.peak, 0.01);
  const Options lars = given({"--optimizer", "lars", "--trust-coefficient", "0.02", "--clip-layer-norm", "2",
                              "--clip-value", "0.5", "--ema", "0.999", "--noise-scale"});
  EXPECT_EQ(lars.optimizer.trust_coefficient, 0.02);
  EXPECT_EQ(lars.trainer.update.clip_layer_norm, 2);
  EXPECT_EQ(lars.trainer.update.clip_value, 0.5);
  EXPECT_EQ(lars.trainer.average.ema, 0.999);
  EXPECT_TRUE(lars.trainer.noise_scale);
  EXPECT_EQ(given({"--swa-start", "3"}).trainer.average.swa_start, 3);
}

TEST(Options, EachScheduleHasItsSettings) {
  using Kind = optim::ScheduleOptions::Kind;
  const auto rate = [](std::vector<const char*> line) {
    const Outcome o = parse_line(std::move(line));
    EXPECT_TRUE(o.result.proceed) << o.err;
    return o.options.rate;
  };
  const auto restarts =
      rate({"--schedule", "cosine-restarts", "--restart-epochs", "5", "--restart-growth", "2", "--min-lr", "0.01"});
  EXPECT_EQ(restarts.kind, Kind::CosineRestarts);
  EXPECT_EQ(restarts.restart_epochs, 5);
  EXPECT_EQ(restarts.restart_growth, 2);
  EXPECT_EQ(restarts.minimum, 0.01);
  EXPECT_EQ(rate({"--schedule", "polynomial", "--power", "0.9"}).power, 0.9);
  EXPECT_EQ(rate({"--schedule", "exponential", "--gamma", "0.9"}).gamma, 0.9);
  EXPECT_EQ(rate({"--schedule", "inverse-sqrt", "--timescale", "4"}).timescale, 4);
  const auto plateau = rate({"--schedule", "plateau", "--plateau-factor", "0.5", "--plateau-patience", "3",
                             "--plateau-threshold", "0.01", "--plateau-cooldown", "2", "--min-lr", "1e-5"});
  EXPECT_EQ(plateau.kind, Kind::Plateau);
  EXPECT_EQ(plateau.plateau.factor, 0.5);
  EXPECT_EQ(plateau.plateau.patience, 3);
  EXPECT_EQ(plateau.plateau.threshold, 0.01);
  EXPECT_EQ(plateau.plateau.cooldown, 2);
  EXPECT_EQ(parse_line({"--schedule", "plateau", "--plateau-factor", "1"}).result.exit_code, 2);
  EXPECT_EQ(parse_line({"--schedule", "cosine-restarts", "--restart-growth", "0.5"}).result.exit_code, 2);
}

TEST(Options, WhatWouldHaveNoEffectIsAnError) {
  const std::vector<std::vector<const char*>> lines = {
      {"--momentum", "0.9", "--optimizer", "adam"},
      {"--nesterov", "--optimizer", "adamw"},
      {"--beta1", "0.8"},
      {"--beta1", "0.8", "--optimizer", "rmsprop"},
      {"--alpha", "0.9"},
      {"--centered", "--optimizer", "adam"},
      {"--trust-coefficient", "0.1"},
      {"--eps", "1e-6", "--optimizer", "lion"},
      {"--milestones", "3"},
      {"--min-lr", "0.1", "--schedule", "constant"},
      {"--cycle-rise", "0.2"},
      {"--min-lr", "0.1", "--schedule", "exponential"},
      {"--restart-epochs", "5"},
      {"--restart-growth", "2", "--schedule", "polynomial"},
      {"--power", "2"},
      {"--gamma", "0.9"},
      {"--timescale", "3"},
      {"--plateau-factor", "0.5"},
      {"--plateau-patience", "2"},
      {"--plateau-threshold", "0.1"},
      {"--plateau-cooldown", "1"},
      {"--step-epochs", "2", "--milestones", "3", "--schedule", "step"},
      {"--warmup-start", "0.2"},
      {"--scale-lr-batch", "64"}};
  for (const auto& line : lines) {
    const Outcome o = parse_line(line);
    EXPECT_EQ(o.result.exit_code, 2) << line[0];
    EXPECT_TRUE(has(o.err, line[0])) << o.err;
  }
}

// The variables of the environment are the test's own while it runs.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* there = std::getenv(name)) before_ = there;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Options, SomeComeFromTheEnvironmentUnlessTheyAreGiven) {
  const Variable dir("LOCKSTEP_DATA_DIR", "/from/environment"), level("LOCKSTEP_LOG_LEVEL", "debug");
  const Outcome alone = parse_line({});
  ASSERT_TRUE(alone.result.proceed) << alone.err;
  EXPECT_EQ(alone.options.dataset.dir, "/from/environment");
  EXPECT_EQ(alone.options.logging.level, LogLevel::Debug);
  EXPECT_EQ(alone.options.from_environment, (std::map<std::string, std::string>{{"data-dir", "LOCKSTEP_DATA_DIR"},
                                                                                {"log-level", "LOCKSTEP_LOG_LEVEL"}}));
  const Outcome given = parse_line({"--data-dir", "/given", "--log-level", "error"});
  EXPECT_EQ(given.options.dataset.dir, "/given");
  EXPECT_EQ(given.options.logging.level, LogLevel::Error);
  EXPECT_TRUE(given.options.from_environment.empty());
  const Outcome file = parse_line({"--config", write_config("data-dir = '/from/file'\n").c_str()});
  EXPECT_EQ(file.options.dataset.dir, "/from/file");
  EXPECT_EQ(file.options.from_environment.count("data-dir"), 0u);
}

TEST(Options, AnEmptyVariableIsNone) {
  const Variable dir("LOCKSTEP_DATA_DIR", ""), level("LOCKSTEP_LOG_LEVEL", nullptr);
  const Outcome o = parse_line({});
  ASSERT_TRUE(o.result.proceed) << o.err;
  EXPECT_TRUE(o.options.dataset.dir.empty());
  EXPECT_EQ(o.options.logging.level, LogLevel::Info);
  EXPECT_TRUE(o.options.from_environment.empty());
}

TEST(Options, AnErrorSaysThatTheValueIsFromTheEnvironment) {
  const Variable level("LOCKSTEP_LOG_LEVEL", "debgu");
  const Outcome o = parse_line({});
  EXPECT_EQ(o.result.exit_code, 2);
  EXPECT_EQ(o.result.message,
            "[options] --log-level is 'debgu', expected one of trace, debug, info, warning, error, off; did you mean "
            "debug?; the value is from LOCKSTEP_LOG_LEVEL");
  EXPECT_FALSE(has(parse_line({"--log-level", "debgu"}).err, "LOCKSTEP_LOG_LEVEL")) << "the command line's own";
  EXPECT_TRUE(parse_line({"--log-level", "info"}).result.proceed);
}

TEST(Options, OfLogsImagesAndUnusedParametersAreRead) {
  const Outcome o = parse_line({"--resize", "224", "--unused", "ignore", "--logger", "dllogger", "--log-per-host",
                                "--log-rank-loss", "--log-level", "trace"});
  ASSERT_TRUE(o.result.proceed) << o.err;
  EXPECT_EQ(o.options.dataset.resize, 224);
  EXPECT_EQ(o.options.trainer.compile.unused, plan::Unused::Ignore);
  EXPECT_EQ(o.options.logging.records, RecordFile::DLLogger);
  EXPECT_TRUE(o.options.logging.per_host && o.options.logging.rank_loss);
  EXPECT_EQ(o.options.logging.level, LogLevel::Trace);
  EXPECT_EQ(validation_error(o.options), "");
  EXPECT_EQ(parse_line({"--resize", "-1"}).result.exit_code, 2);
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
