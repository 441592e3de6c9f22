#include "lockstep/train/report/run_record.h"

#include "lockstep/core/error.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {

nlohmann::json to_json(const std::optional<EvaluationRecord>& evaluation) {
  if (!evaluation) return nullptr;
  return {{"step", evaluation->step}, {"loss", evaluation->loss}, {"accuracy", evaluation->accuracy}};
}

RunRecord run_record(const nlohmann::json& metadata, const std::string& file) {
  RunRecord record{.epoch = epoch_sums(metadata, file), .evaluation = {}};
  const char* key = "evaluation_due";
  try {
    record.evaluation_due = metadata.value(key, false);
    key = "evaluation";
    const nlohmann::json evaluation = metadata.value(key, nlohmann::json());
    if (evaluation.is_null()) return record;
    record.evaluation = {.step = evaluation.at("step").get<std::int64_t>(),
                         .loss = number(evaluation.at("loss")),
                         .accuracy = number(evaluation.at("accuracy"))};
  } catch (const nlohmann::json::exception& error) {
    fail("resume", "{}: '{}' in its metadata cannot be used: {}", file, key, error.what());
  }
  return record;
}

}  // namespace lockstep::train
