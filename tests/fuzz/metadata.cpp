// A checkpoint's metadata, as a run that wants to go on from it reads it.
#include "lockstep/train/run/continuation.h"

#include <nlohmann/json.hpp>

#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/callbacks/early_stop.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/report/run_record.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

// Of one that evaluates for the first time, and of a user's.
train::CallbackStates states() {
  train::CallbackStates states;
  train::EarlyStop(2, "loss", false).save_state(states["patience"]);
  states["own"].set("name", "a text");
  states["own"].set("count", -7);
  states["own"].set("best", 0.25);
  return states;
}

void load(const train::CallbackStates& states) {
  train::CallbackList list;
  list.add(train::CallbackList::Stage::Decide, std::make_unique<train::EarlyStop>(2, "loss", false));
  list.load_states(states);
}

nlohmann::json run(std::int64_t shards) {
  train::Options options;
  options.trainer.shards = shards;
  return {{"version", train::kMetadataVersion},
          {"program", "train"},
          {"step", 7},
          {"epoch", 1},
          {"offset", 64},
          {"seed", 1},
          {"train_samples", 400},
          {"global_batch", 64},
          {"options", nlohmann::json::parse(train::canonical(options))},
          {"ranks", 2},
          {"threads", 1},
          {"instructions", "avx2"},
          {"blas", "OpenBLAS"},
          {"kernels", "avx2 f32"},
          {"optimizer", "sgd"},
          {"schedule_epochs", 3.0},
          {"evaluation_due", true},
          {"evaluation", train::to_json(train::EvaluationRecord{
                             .step = 7, .loss = 0.5, .metrics = {{.name = "accuracy", .results = {0.25}}}})},
          {train::kEpochSumsKey, train::to_json({.epoch = 1, .loss = 0.5, .weight = 64, .samples = 64})},
          {train::kCallbacksKey, train::to_json(states())}};
}

}  // namespace

std::vector<Bytes> seeds() { return {bytes_of(run(0).dump()), bytes_of(run(4).dump(1))}; }

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string text(fuzz::text_of(data, size));
  for (const std::int64_t shards : {0, 4}) {
    fuzz::expect_answer([&] {
      const nlohmann::json metadata = train::parse_metadata(text, "memory");
      fuzz::load(train::run_record(metadata, "memory").callbacks);
      train::continuation(metadata, fuzz::run(shards), "memory");
    });
  }
  return 0;
}
