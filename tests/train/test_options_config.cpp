// Options in the TOML file of --config.
#include <gtest/gtest.h>

#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

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
        {"; no comment\n", ", line 1: '; no comment' has no value, expected KEY = VALUE"},
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
  // An error of the command line itself is not the file's fault.
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

TEST(Options, AConfigFileIsARegularFileOfModestSize) {
  for (const std::string& path :
       {std::string("/dev/zero"), testing::TempDir(), write_config(std::string((1 << 20) + 1, '#'))}) {
    const Outcome o = parse_line({"--config", path.c_str()});
    EXPECT_EQ(o.result.exit_code, 2) << path;
    EXPECT_TRUE(has(o.err, path)) << o.err;
  }
}

}  // namespace
}  // namespace lockstep::train
