#include "lockstep/train/report/progress.h"

#include <gtest/gtest.h>

#include "lockstep/train/callbacks/log_rank_loss.h"
#include "tests/messages.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

MetricResult accuracy(double value) { return {.name = "accuracy", .results = {value}, .form = MetricForm::Percent}; }

class ProgressTest : public FolderTest {
 protected:
  LogOptions log_options(int columns = 0, int rank = 0) {
    LogOptions options{.output = folder_, .rank = rank, .host = "h", .out = out_.file(), .err = err_.file()};
    if (columns > 0) options.columns = [columns] { return columns; };
    return options;
  }
  // Two epochs of five updates of 64 samples, half a second each, with a pause of a minute in between.
  void train(Log& log, std::int64_t log_every) {
    Progress progress(
        log,
        {.epochs = 2, .steps_per_epoch = 5, .total_steps = 10, .log_every = log_every, .now = [this] { return now_; }});
    ProgressState state{.samples = 64, .loss = 1.25, .metrics = {accuracy(0.5)}, .lr = 0.1};
    for (state.epoch = 1; state.epoch <= 2; ++state.epoch) {
      for (state.step_in_epoch = 1; state.step_in_epoch <= 5; ++state.step_in_epoch) {
        now_ += 0.5;
        ++state.step;
        progress.update(state);
      }
      state.step_in_epoch = 5;
      progress.finish_epoch(state);
      now_ += 60;
    }
    rate_ = progress.samples_per_second();
  }
  TextStream out_, err_;
  double now_ = 100, rate_ = 0;
};

TEST_F(ProgressTest, WithoutATerminalItIsPlainLines) {
  {
    Log log(log_options());
    train(log, 2);
  }
  const std::string text = out_.text();
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 6u) << text;  // updates 2, 4, the end of epoch 1 at 5, 6, 8, and 10, which ends epoch 2 too
  EXPECT_EQ(lines[0], "epoch 1/2  step 2/10  loss 1.25  accuracy 50.00%  lr 0.1  128 samples/s  ETA 0:04");
  EXPECT_TRUE(has(lines[2], "epoch 1/2  step 5/10")) << lines[2];
  EXPECT_TRUE(has(lines[5], "epoch 2/2  step 10/10")) << lines[5];
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 6u);
}

TEST_F(ProgressTest, PausesDoNotCountInTheRate) {
  Log log(log_options());
  train(log, 0);
  EXPECT_NEAR(rate_, 128, 1e-9);
}

TEST_F(ProgressTest, LogEveryZeroLeavesTheEndsOfEpochs) {
  Log log(log_options());
  train(log, 0);
  EXPECT_EQ(lines_of(out_.text()).size(), 2u);
}

TEST_F(ProgressTest, OtherRanksAndQuietWriteOnlyTheirFile) {
  {
    Log log(log_options(80, 1));
    train(log, 5);
  }
  LogOptions quiet = log_options(80);
  quiet.quiet = true;
  {
    Log log(quiet);
    train(log, 5);
  }
  EXPECT_EQ(out_.text() + err_.text(), "");
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0001.log")).size(), 2u);
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 2u);
}

TEST_F(ProgressTest, ATerminalGetsABarAndTheEndsOfEpochs) {
  {
    Log log(log_options(80));
    train(log, 2);
  }
  const std::string text = out_.text();
  EXPECT_FALSE(has(text, "\x1b"));
  EXPECT_TRUE(has(text, "[")) << text;
  EXPECT_TRUE(has(text, "ETA"));
  std::size_t newlines = 0;
  for (char c : text) newlines += c == '\n' ? 1 : 0;
  EXPECT_EQ(newlines, 2u);
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 6u);
}

const ProgressOptions kKnown{.epochs = 20, .steps_per_epoch = 400, .total_steps = 8000};
const ProgressState kState{
    .epoch = 3, .step_in_epoch = 100, .step = 900, .loss = 1.5, .metrics = {accuracy(0.25)}, .lr = 0.1};

TEST(Bar, FitsAnyWidth) {
  for (int columns = 0; columns <= 250; ++columns) {
    EXPECT_LE(static_cast<int>(bar_text(kState, kKnown, 123456, 1e6, columns).size()), std::max(0, columns - 1));
  }
}

TEST(Bar, DropsTheLeastNeededFirst) {
  const std::string wide = bar_text(kState, kKnown, 500, 65, 120);
  EXPECT_EQ(
      wide,
      "epoch 3/20  [=========>                            ]  100/400  loss 1.5000  accuracy 25.00%  500 samples/s  ETA "
      "1:05");
  const std::string middle = bar_text(kState, kKnown, 500, 65, 60);
  EXPECT_FALSE(has(middle, "samples/s")) << middle;
  EXPECT_TRUE(has(middle, "ETA 1:05")) << middle;
  EXPECT_EQ(bar_text(kState, kKnown, 500, 65, 12), "100/400");
}

TEST(Bar, IsEmptyAtTheStartAndFullAtTheEnd) {
  ProgressState state = kState;
  state.step_in_epoch = 0;
  EXPECT_TRUE(has(bar_text(state, kKnown, 0, -1, 80), "[  "));
  state.step_in_epoch = 400;
  EXPECT_TRUE(has(bar_text(state, kKnown, 0, -1, 80), "==]"));
  state.step_in_epoch = 500;  // more than was announced
  EXPECT_TRUE(has(bar_text(state, kKnown, 0, -1, 80), "==]"));
}

TEST(Bar, UnknownTotalsAreLeftOut) {
  const std::string text = bar_text(kState, {}, 0, -1, 80);
  EXPECT_EQ(text, "epoch 3  100  loss 1.5000  accuracy 25.00%");
}

// 1000 samples in batches of 10, each of a second.
void evaluate(Progress& progress, double& now) {
  progress.begin_evaluation(1000);
  for (std::int64_t done = 10; done <= 1000; done += 10) {
    now += 1;
    progress.evaluated(done);
  }
  progress.end_evaluation();
}

TEST_F(ProgressTest, ALongEvaluationIsNotSilent) {
  {
    Log log(log_options());
    Progress progress(log, {.now = [this] { return now_; }});
    evaluate(progress, now_);
  }
  const auto lines = lines_of(out_.text());
  ASSERT_EQ(lines.size(), 10u) << out_.text();
  EXPECT_EQ(lines[0], "evaluation  100/1000 samples  10 samples/s  ETA 1:30");
  EXPECT_EQ(lines[9], "evaluation  1000/1000 samples  10 samples/s  ETA 0:00");
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 10u);
}

TEST_F(ProgressTest, AShortEvaluationSaysNothing) {
  Log log(log_options());
  Progress progress(log, {.now = [this] { return now_; }});
  progress.begin_evaluation(100);
  now_ += 9;
  progress.evaluated(100);
  progress.end_evaluation();
  EXPECT_EQ(out_.text(), "");
}

TEST_F(ProgressTest, AnEvaluationHasABarOnATerminal) {
  {
    Log log(log_options(60));
    Progress progress(log, {.now = [this] { return now_; }});
    evaluate(progress, now_);
    const std::string text = out_.text();
    EXPECT_TRUE(has(text, "\revaluation  [  ") && has(text, " ]  0/1000")) << text;
    EXPECT_TRUE(has(text, "]  500/1000  ETA 0:50")) << text;
    EXPECT_TRUE(text.ends_with(" \r")) << "the bar goes";
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 10u);
}

TEST_F(ProgressTest, ThePauseOfAnEvaluationDoesNotCountInTheRate) {
  Log log(log_options());
  train(log, 0);
  Progress progress(log, {.log_every = 0, .now = [this] { return now_; }});
  ProgressState state{.samples = 64};
  for (state.step = 1; state.step <= 10; ++state.step) {
    now_ += 0.5;
    progress.update(state);
    if (state.step == 5) evaluate(progress, now_);
  }
  EXPECT_NEAR(progress.samples_per_second(), 128, 1e-9);
}

TEST(Bar, OfAnEvaluationFitsAnyWidth) {
  for (int columns = 0; columns <= 100; ++columns) {
    EXPECT_LE(static_cast<int>(evaluation_bar_text(50, 128, 65, columns).size()), std::max(0, columns - 1));
  }
  EXPECT_EQ(evaluation_bar_text(50, 128, 65, 30), "evaluation  50/128  ETA 1:05");
}

TEST_F(ProgressTest, EveryUpdateMayHaveALineWithItsEpochStepAndLoss) {
  TextStream out, err;
  Log log({.output = folder_, .rank = 0, .host = "n", .out = out.file(), .err = err.file()});
  Progress progress(log, {.epochs = 2, .total_steps = 6, .log_every = 1});
  for (int step = 1; step <= 6; ++step) {
    const ProgressState state{
        .epoch = 1 + (step - 1) / 3, .step_in_epoch = 1 + (step - 1) % 3, .step = step, .loss = 0.5 * step};
    progress.update(state);
    if (step % 3 == 0) progress.finish_epoch(state);
  }
  const auto lines = lines_of(out.text());
  ASSERT_EQ(lines.size(), 6u) << out.text();
  EXPECT_TRUE(lines[0].starts_with("epoch 1/2  step 1/6  loss 0.5  ")) << lines[0];
  EXPECT_TRUE(lines[5].starts_with("epoch 2/2  step 6/6  loss 3  ")) << lines[5];
  EXPECT_EQ(lines_of(read(log.file())).size(), 6u);
}

TEST(Line, OfARanksOwnLossHasItsSamples) {
  const ProgressOptions options{.epochs = 3, .total_steps = 282};
  EXPECT_EQ(rank_loss_text(1, 50, {.loss_sum = 18.4096, .weight = 8, .samples = 8}, options),
            "epoch 1/3  step 50/282  own loss 2.3012  8 samples");
  EXPECT_EQ(rank_loss_text(1, 50, {.loss_sum = 2.5, .weight = 1, .samples = 1}, {}),
            "epoch 1  step 50  own loss 2.5  1 sample");
  EXPECT_EQ(rank_loss_text(2, 51, {}, options), "epoch 2/3  step 51/282  own loss: no samples on this rank");
}

TEST(Line, UnknownTotalsAreLeftOut) {
  EXPECT_EQ(line_text(kState, {}, 0, -1), "epoch 3  step 900  loss 1.5  accuracy 25.00%  lr 0.1");
}

TEST(Line, AModelThatDoesNotCountHasNoAccuracy) {
  ProgressState state = kState;
  state.metrics.clear();
  EXPECT_EQ(line_text(state, {}, 0, -1), "epoch 3  step 900  loss 1.5  lr 0.1");
  EXPECT_FALSE(has(bar_text(state, {.steps_per_epoch = 128}, 0, -1, 100), "acc"));
}

TEST(Duration, IsReadable) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(65.4), "1:05");
  EXPECT_EQ(duration_text(7384), "2:03:04");
  EXPECT_EQ(duration_text(86400 + 7384), "1d 02:03");
}

}  // namespace
}  // namespace lockstep::train
