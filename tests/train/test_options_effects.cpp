// Values of options: what is refused, what options change of each other, and what the environment gives.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <optional>

#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

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
      {"--scale-lr-batch", "64"},
      {"--abort-timeout", "100", "--stall-timeout", "0"},
      {"--patience-metric", "accuracy"},
      {"--trace-steps", "3"},
      {"--guard-warn", "0.9"},
      {"--log-rank-loss", "--log-every", "0"},
      {"--time-margin", "10s", "--time-limit", "none"},
      {"--table-placement", "range"}};
  for (const auto& line : lines) {
    const Outcome o = parse_line(line);
    EXPECT_EQ(o.result.exit_code, 2) << line[0];
    EXPECT_TRUE(has(o.err, line[0])) << o.err;
  }
}

TEST(Options, WhatHasAnEffectIsNoError) {
  const std::vector<std::vector<const char*>> lines = {{"--abort-timeout", "100"},
                                                       {"--abort-timeout", "0", "--stall-timeout", "0"},
                                                       {"--patience-metric", "accuracy", "--patience", "2"},
                                                       {"--trace-steps", "3", "--trace", "t.json"},
                                                       {"--guard-warn", "0.9", "--guard-norm", "5"},
                                                       {"--guard-warn", "0.9", "--guard-spike", "5"},
                                                       {"--log-rank-loss"},
                                                       {"--time-margin", "10s"},
                                                       {"--table-placement", "range", "--shard-tables"}};
  for (const auto& line : lines) {
    const Outcome o = parse_line(line);
    EXPECT_TRUE(o.result.proceed) << line[0] << ": " << o.err;
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
  EXPECT_EQ(o.options.logging.records, "dllogger");
  EXPECT_TRUE(o.options.logging.per_host && o.options.logging.rank_loss);
  EXPECT_EQ(o.options.logging.level, LogLevel::Trace);
  EXPECT_EQ(validation_error(o.options), "");
  EXPECT_EQ(parse_line({"--resize", "-1"}).result.exit_code, 2);
}

}  // namespace
}  // namespace lockstep::train
