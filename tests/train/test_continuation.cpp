#include "lockstep/train/run/continuation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/report/run_record.h"

namespace lockstep::train {
namespace {

nlohmann::json run(const Options& options = {}) {
  return nlohmann::json::parse(nlohmann::json{
      {"version", kMetadataVersion},
      {"step", 7},
      {"epoch", 1},
      {"offset", 64},
      {"seed", options.seed},
      {"train_samples", 400},
      {"global_batch", 64},
      {"options", nlohmann::json::parse(canonical(options))},
      {"ranks", 2},
      {"threads", 1},
      {"instructions", "avx2"},
      {"blas", "OpenBLAS 1"},
      {"kernels", "avx2 f32"},
      {"optimizer", "sgd"}}.dump());
}

std::string refusal(const nlohmann::json& saved, const nlohmann::json& now, bool change_bits = false) {
  try {
    continuation(saved, now, "FILE", change_bits);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Continuation, OfTheSameRunIsWhereItWas) {
  const Continuation at = continuation(run(), run(), "FILE");
  EXPECT_EQ(at.step, 7);
  EXPECT_EQ(at.epoch, 1);
  EXPECT_EQ(at.offset, 64);
  EXPECT_TRUE(at.notes.empty());
}

TEST(EpochSums, ComeBackBitForBit) {
  const EpochSums sums{.epoch = 3,
                       .loss = 0.1 + 0.2,
                       .weight = 1.0 / 3,
                       .samples = 7,
                       .metrics = {{.name = "mae", .sums = {0.1, 1.0 / 3}}},
                       .after = 2};
  const auto text = nlohmann::json{{kEpochSumsKey, to_json(sums)}}.dump();
  const EpochSums back = epoch_sums(nlohmann::json::parse(text), "FILE");
  EXPECT_EQ(back.epoch, 3);
  EXPECT_EQ(back.loss, sums.loss);
  EXPECT_EQ(back.weight, sums.weight);
  EXPECT_EQ(back.samples, 7);
  ASSERT_EQ(back.metrics.size(), 1U);
  EXPECT_EQ(back.metrics[0].name, "mae");
  EXPECT_EQ(back.metrics[0].sums, sums.metrics[0].sums);
  EXPECT_EQ(back.after, 2);
  EXPECT_TRUE(to_json(EpochSums{}).is_null());
}

// Programs before metrics were objects counted correct predictions, and wrote these counts.
TEST(EpochSums, OfOlderCheckpointsHaveAccuracyFromCounts) {
  const nlohmann::json counted = {
      {"epoch", 1}, {"loss", 0.5}, {"weight", 64}, {"samples", 64}, {"counts", {{"correct", 8}}}};
  const EpochSums sums = epoch_sums({{kEpochSumsKey, counted}}, "FILE");
  ASSERT_EQ(sums.metrics.size(), 1U);
  EXPECT_EQ(sums.metrics[0].name, "accuracy");
  EXPECT_EQ(sums.metrics[0].sums, std::vector<double>{8});
}

TEST(EpochSums, OlderCheckpointsHaveNone) {
  EXPECT_EQ(epoch_sums(run(), "FILE").epoch, -1);
  EXPECT_EQ(epoch_sums({{kEpochSumsKey, nullptr}}, "FILE").epoch, -1);
}

TEST(EpochSums, OfAPartOfTheEpochSaySo) {
  EpochSums sums{.epoch = 0,
                 .loss = 2,
                 .weight = 4,
                 .samples = 4,
                 .metrics = {{.name = "accuracy", .results = {0.75}, .form = MetricForm::Percent}}};
  EXPECT_EQ(sums.str(), "training loss 0.5000, accuracy 75.00%; ");
  EXPECT_EQ(EpochSums({.epoch = 0, .loss = 2, .weight = 4, .samples = 4}).str(), "training loss 0.5000; ")
      << "of a model that does not count";
  sums.after = 6;
  EXPECT_EQ(
      sums.str(),
      "training loss 0.5000, accuracy 75.00% (of the steps after 6: the checkpoint has no sums of earlier steps); ");
}

TEST(EpochSums, ThatAreNoneAreNamed) {
  nlohmann::json whole = to_json(EpochSums{.epoch = 0, .samples = 4});
  for (const char* key : {"epoch", "loss", "weight", "samples"}) {
    nlohmann::json spoilt = whole;
    spoilt[key] = "x";
    try {
      epoch_sums({{kEpochSumsKey, spoilt}}, "FILE");
      FAIL() << key;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("[resume] FILE: 'epoch_sums' in its metadata"), std::string::npos);
    }
  }
}

TEST(RunRecord, ComesBackWithItsEvaluation) {
  const RunRecord none = run_record(run(), "FILE");  // an older program's
  EXPECT_FALSE(none.evaluation || none.evaluation_due);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const EvaluationRecord evaluation{.step = 7, .loss = nan, .metrics = {{.name = "mae", .results = {0.1 + 0.2}}}};
  const auto text = nlohmann::json{{"evaluation_due", true}, {"evaluation", to_json(evaluation)}}.dump();
  const RunRecord back = run_record(nlohmann::json::parse(text), "FILE");
  EXPECT_TRUE(back.evaluation_due);
  ASSERT_TRUE(back.evaluation);
  EXPECT_EQ(back.evaluation->step, 7);
  EXPECT_EQ(find_result(back.evaluation->metrics, "mae"), 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(back.evaluation->loss)) << "written as null";
  EXPECT_TRUE(to_json(std::optional<EvaluationRecord>()).is_null());
}

TEST(RunRecord, WithoutMetricsComesBackWithoutThem) {
  const auto text = nlohmann::json{{"evaluation", to_json(EvaluationRecord{.step = 7, .loss = 0.5})}}.dump();
  const RunRecord back = run_record(nlohmann::json::parse(text), "FILE");
  ASSERT_TRUE(back.evaluation);
  EXPECT_EQ(back.evaluation->loss, 0.5);
  EXPECT_TRUE(back.evaluation->metrics.empty());
}

TEST(RunRecord, ComesBackWithStatesOfCallbacksBitForBit) {
  EXPECT_TRUE(run_record(run(), "FILE").callbacks.empty()) << "an older program's";
  using Integers = std::numeric_limits<std::int64_t>;
  using Numbers = std::numeric_limits<double>;
  CallbackStates states;
  states["none"];
  for (const std::int64_t integer : {Integers::min(), Integers::max(), std::int64_t{0}, std::int64_t{-7}})
    states["integers"].set("i" + std::to_string(integer), integer);
  for (const double number :
       {0.0, -0.0, 3.0, 0.1 + 0.2, Numbers::denorm_min(), Numbers::max(), Numbers::infinity(), -Numbers::infinity()})
    states["numbers"].set(fmt::format("n{}", number), number);
  states["texts"].set("t", "grün \"quoted\"\n\x01");
  const auto text = nlohmann::json{{kCallbacksKey, to_json(states)}}.dump();
  EXPECT_EQ(run_record(nlohmann::json::parse(text), "FILE").callbacks, states);
  EXPECT_TRUE(std::signbit(
      run_record(nlohmann::json::parse(text), "FILE").callbacks["numbers"].number(fmt::format("n{}", -0.0))));
  states = {};
  states["nan"].set("x", Numbers::quiet_NaN());
  const auto nan = nlohmann::json{{kCallbacksKey, to_json(states)}}.dump();
  EXPECT_TRUE(std::isnan(run_record(nlohmann::json::parse(nan), "FILE").callbacks["nan"].number("x")));
}

TEST(RunRecord, NamesDamagedStatesOfCallbacks) {
  nlohmann::json many = nlohmann::json::object(), wide = nlohmann::json::object();
  for (std::size_t i = 0; i <= kMostCallbackStates; ++i) many[fmt::format("c{}", i)] = nlohmann::json::object();
  for (std::size_t i = 0; i <= CallbackState::kMostValues; ++i) wide[fmt::format("v{}", i)] = 1;
  const std::vector<nlohmann::json> wrong{nullptr,
                                          7,
                                          nlohmann::json::array(),
                                          many,
                                          {{"c", nullptr}},
                                          {{"c", 7}},
                                          {{"c", wide}},
                                          {{"c", {{"", 1}}}},
                                          {{"c", {{"x", nullptr}}}},
                                          {{"c", {{"x", true}}}},
                                          {{"c", {{"x", nlohmann::json::array({1})}}}},
                                          {{"c", {{"x", {{"number", "1"}}}}}},
                                          {{"c", {{"x", std::numeric_limits<std::uint64_t>::max()}}}},
                                          {{"c", {{"x", std::string(CallbackState::kLongestText + 1, 'x')}}}}};
  for (const nlohmann::json& value : wrong) {
    try {
      run_record({{kCallbacksKey, value}}, "FILE");
      ADD_FAILURE() << value;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("[resume] FILE: 'callbacks' in its metadata cannot be used: "),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(RunRecord, ThatIsNoneIsNamed) {
  const std::vector<std::pair<const char*, nlohmann::json>> wrong{
      {"evaluation_due", "yes"},
      {"evaluation_due", nullptr},
      {"evaluation", nlohmann::json::object()},
      {"evaluation", {1, 2}},
      {"evaluation", {{"step", 7}, {"loss", "x"}, {"accuracy", 1.0}}}};
  for (const auto& [key, value] : wrong) {
    try {
      run_record({{key, value}}, "FILE");
      ADD_FAILURE() << key << " " << value;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(fmt::format("[resume] FILE: '{}' in its metadata", key)),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Continuation, TellsWhenTheScheduleEnded) {
  nlohmann::json saved = run();
  EXPECT_FALSE(continuation(saved, run(), "FILE").schedule_epochs) << "an older program's";
  saved["schedule_epochs"] = 2.5;
  EXPECT_EQ(continuation(saved, run(), "FILE").schedule_epochs, 2.5);
  saved["schedule_epochs"] = "long";
  EXPECT_NE(refusal(saved, run()).find("[resume] FILE: 'schedule_epochs' in its metadata"), std::string::npos);
}

TEST(Continuation, RefusesWhatWouldChangeBitsWithShardsAndNamesItWithout) {
  Options before, now;
  now.trainer.parallel.wire = parallel::Wire::BF16;
  EXPECT_EQ(continuation(run(before), run(now), "FILE").notes,
            std::vector<std::string>{"--wire: \"f32\" in the checkpoint, \"bf16\" now"});
  before.trainer.shards = now.trainer.shards = 4;
  EXPECT_NE(refusal(run(before), run(now)).find("FILE: with --shards, --wire was f32, this run has bf16"),
            std::string::npos);

  nlohmann::json other = run();
  other["blas"] = "OpenBLAS 2";
  EXPECT_EQ(continuation(run(), other, "FILE").notes,
            std::vector<std::string>{"blas: OpenBLAS 1 in the checkpoint, OpenBLAS 2 now"});
  other = run(before);
  other["blas"] = "OpenBLAS 2";
  EXPECT_NE(refusal(run(before), other).find("'blas' is OpenBLAS 1, this run has OpenBLAS 2"), std::string::npos);
  other = run(before);
  other["ranks"] = 3;
  EXPECT_EQ(continuation(run(before), other, "FILE").notes,
            std::vector<std::string>{"ranks: 2 in the checkpoint, 3 now"});
}

TEST(Continuation, NamesTheOptionThatChangedAndWhatToDo) {
  Options now;
  now.dataset.limit_train = 320;
  nlohmann::json fewer = run(now);
  fewer["train_samples"] = 320;
  EXPECT_EQ(refusal(run(), fewer),
            "[resume] FILE: --limit-train was 0, this run has 320, so 'train_samples' is 400, this run has 320: the "
            "position in the epoch needs the same data; pass --limit-train 0 as before, or omit --resume to begin "
            "a new run");
  fewer = run();  // other files
  fewer["train_samples"] = 320;
  EXPECT_NE(refusal(run(), fewer).find("'train_samples' is 400, this run has 320; "), std::string::npos);
  now = {.trainer = {.shards = 4}};
  EXPECT_EQ(
      refusal(run(), run(now)),
      "[resume] FILE: with --shards, --shards was 0, this run has 4: other shards give other bits; pass --shards 0 "
      "as before, or omit --resume to begin a new run");
  EXPECT_NE(refusal(run(), run({.seed = 2}))
                .find("'seed' is 1, this run has 2; an epoch keeps its order of samples; "
                      "pass --seed 1 as before"),
            std::string::npos);
}

TEST(Continuation, OfPortableBitsGoesOnAnywhereAndOfOthersByAnExplicitWord) {
  const Options sharded{.trainer = {.shards = 4}};
  nlohmann::json portable = run(sharded), elsewhere, older = run(sharded);
  portable["bits"] = "portable";
  portable["kernels"] = "portable f32 fast";
  elsewhere = portable;
  elsewhere["threads"] = 3;
  elsewhere["instructions"] = "neon";
  elsewhere["blas"] = "none";
  EXPECT_TRUE(continuation(portable, elsewhere, "FILE").notes.empty());
  EXPECT_EQ(
      refusal(portable, run(sharded)),
      "[resume] FILE: --bits was portable, this run has fast: what follows would not have the bits of the run that "
      "it continues; pass --bits portable as before, or --change-bits to go on with other bits");
  EXPECT_NE(refusal(older, portable).find("--bits was fast, this run has portable"), std::string::npos);
  EXPECT_EQ(refusal(portable, run(sharded), true), "");
  EXPECT_NE(refusal(run(sharded),
                    [&] {
                      nlohmann::json other = run(sharded);
                      other["threads"] = 3;
                      return other;
                    }())
                .find("with --shards, pass --threads as before"),
            std::string::npos);
}

TEST(Continuation, RefusesImagesOfAnotherSizeAlsoFromOlderFiles) {
  Options before, now;
  before.dataset.resize = 224;
  EXPECT_EQ(continuation(run(before), run(before), "FILE").step, 7);
  EXPECT_EQ(refusal(run(before), run(now)),
            "[resume] FILE: --resize was 224, this run has 0: images of another size are other samples; pass --resize "
            "224 as before, or omit --resume to begin a new run");
  nlohmann::json older = run(now);
  older["options"].erase("resize");
  EXPECT_EQ(continuation(older, run(now), "FILE").step, 7);
  EXPECT_NE(refusal(older, run(before)).find("--resize was 0, this run has 224"), std::string::npos);
}

TEST(Continuation, RefusesOtherOptionsByWhichSamplesAreDefined) {
  const auto drawn = [](const nlohmann::json& options) {
    nlohmann::json metadata = run();
    metadata["data"] = {{kDefiningOptions, options}};
    return metadata;
  };
  const nlohmann::json before = drawn({{"click-seed", 1}, {"bags", ""}});
  EXPECT_EQ(refusal(before, before), "");
  EXPECT_EQ(
      refusal(before, drawn({{"click-seed", 2}})),
      "[resume] FILE: --click-seed was 1, this run has 2: the samples are others; pass --click-seed 1 as before, or "
      "omit --resume to begin a new run");
  EXPECT_EQ(
      refusal(before, drawn({{"bags", "a:sum"}})),
      "[resume] FILE: --bags was none, this run has a:sum: the samples are others; leave out --bags as before, or "
      "omit --resume to begin a new run");
  EXPECT_EQ(refusal(before, drawn({{"click-new", 2}})), "") << "older files lack options that were added since";
  for (const nlohmann::json& other : {nlohmann::json(), nlohmann::json(3), nlohmann::json::array({1})})
    EXPECT_EQ(refusal(drawn(other), before), "") << other.dump();
}

TEST(Continuation, SaysNothingOfLogsThatChanged) {
  Options now;
  now.logging.level = LogLevel::Debug;  // not in a checkpoint: belongs to the node
  EXPECT_TRUE(continuation(run(), run(now), "FILE").notes.empty());
}

TEST(Continuation, NamesTheOptionByWhichTheOptimizerKeepsOtherStates) {
  const auto rmsprop = [](bool centered, double momentum) {
    Options options{.optimizer = {.rule = optim::Rule::Rmsprop}};
    options.optimizer.rmsprop.centered = centered;
    options.optimizer.sgd.momentum = momentum;
    nlohmann::json metadata = run(options);
    metadata["optimizer"] = "rmsprop";
    return metadata;
  };
  EXPECT_EQ(refusal(rmsprop(false, 0), rmsprop(true, 0)),
            "[resume] FILE: --centered was false, this run has true, so rmsprop kept square for each weight, and keeps "
            "square, mean in this run; pass --centered=false as before, or omit --resume to begin a new run");
  EXPECT_EQ(refusal(rmsprop(true, 0.5), rmsprop(false, 0)),
            "[resume] FILE: --momentum was 0.5, this run has 0.0; --centered was true, this run has false, so rmsprop "
            "kept square, mean, momentum for each weight, and keeps square in this run; pass --momentum 0.5 --centered "
            "as before, or omit --resume to begin a new run");
  EXPECT_EQ(refusal(rmsprop(true, 0.5), rmsprop(true, 0.9)), "") << "another value keeps the same states";
  Options plain;
  plain.optimizer.sgd.momentum = 0;
  EXPECT_EQ(refusal(run(plain), run()),
            "[resume] FILE: --momentum was 0.0, this run has 0.9, so sgd kept nothing for each weight, and keeps "
            "momentum in this run; pass --momentum 0.0 as before, or omit --resume to begin a new run");
  nlohmann::json own = run(), other = run(plain);  // the program has a rule of its own, which reads no option
  own["optimizer"] = other["optimizer"] = "shampoo";
  EXPECT_EQ(refusal(other, own), "");
  nlohmann::json older = run(plain), damaged = run(plain);
  older["options"].erase("momentum");
  damaged["options"]["momentum"] = "much";
  for (const nlohmann::json& unknown : {older, damaged})
    EXPECT_EQ(refusal(unknown, run(plain)), "") << "the tensors of the file decide";
}

TEST(Continuation, NamesTheModelsOptionThatChanged) {
  nlohmann::json before = run(), now = run();
  EXPECT_EQ(model_difference(before, now), "");
  before["options"]["depth"] = 20;
  now["options"]["depth"] = 32;
  now["options"]["lr"] = 0.5;  // no part of the model
  EXPECT_EQ(model_difference(before, now),
            "--depth was 20, this run has 32; pass --depth 20 as before, or omit --resume to begin a new run");
  now = before;
  before["options"]["dataset"] = "digits";
  now["options"]["dataset"] = "cifar100";
  EXPECT_NE(model_difference(before, now).find("--dataset was digits, this run has cifar100; "), std::string::npos);
}

TEST(Continuation, RefusesWhatIsNoPlaceInAnEpoch) {
  for (const char* key : {"step", "epoch", "offset"}) {
    for (const nlohmann::json& wrong :
         {nlohmann::json(-1), nlohmann::json("x"), nlohmann::json(1.5), nlohmann::json()}) {
      nlohmann::json saved = run();
      saved[key] = wrong;
      EXPECT_NE(refusal(saved, run()).find(key), std::string::npos) << key << " " << wrong;
    }
  }
  nlohmann::json saved = run();
  saved["offset"] = 401u;  // as a parser gives it
  EXPECT_NE(refusal(saved, run()).find("expected at most the 400 samples"), std::string::npos);
}

TEST(Continuation, OfNestedOrDamagedTextIsAnError) {
  for (const std::string& text : {std::string(100000, '['), std::string("{\"a\":"), std::string("7"), std::string()})
    EXPECT_THROW(parse_metadata(text, "FILE"), Error);
}

}  // namespace
}  // namespace lockstep::train
