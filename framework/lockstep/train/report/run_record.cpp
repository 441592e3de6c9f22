#include "lockstep/train/report/run_record.h"

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {
namespace {

// JSON has no form for a number that is not finite: such a number is an object {"number": "inf"}.
constexpr const char* kNotFinite = "number";

nlohmann::json json_of(const CallbackState::Value& value) {
  const double* number = std::get_if<double>(&value);
  if (number != nullptr && !std::isfinite(*number))
    return {{kNotFinite, std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf"}};
  return std::visit([](const auto& plain) { return nlohmann::json(plain); }, value);
}

CallbackState::Value state_value(const nlohmann::json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number_unsigned()) {
    const auto number = json.get<std::uint64_t>();
    check(number < std::uint64_t{1} << 63, "callback state", "{} has more than 63 bits", number);
    return static_cast<std::int64_t>(number);
  }
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json == nlohmann::json{{kNotFinite, "inf"}}) return kInfinity;
  if (json == nlohmann::json{{kNotFinite, "-inf"}}) return -kInfinity;
  if (json == nlohmann::json{{kNotFinite, "nan"}}) return std::numeric_limits<double>::quiet_NaN();
  fail("callback state", "a value is of the type '{}', expected an integer, a number or a text", json.type_name());
}

CallbackState callback_state(const nlohmann::json& json) {
  check(json.is_object(), "callback state", "it is of the type '{}', expected an object", json.type_name());
  CallbackState state;
  for (const auto& [name, value] : json.items()) state.set(name, state_value(value));
  return state;
}

CallbackStates callback_states(const nlohmann::json& metadata, const std::string& file) {
  const auto found = metadata.find(kCallbacksKey);
  if (found == metadata.end()) return {};
  check(found->is_object() && found->size() <= kMostCallbackStates, "resume",
        "{}: '{}' in its metadata cannot be used: expected an object of at most {} states", file, kCallbacksKey,
        kMostCallbackStates);
  CallbackStates states;
  for (const auto& [name, json] : found->items()) {
    try {
      states[name] = callback_state(json);
    } catch (const Error& error) {
      fail("resume", "{}: '{}' in its metadata cannot be used: the state '{}': {}", file, kCallbacksKey,
           printable(name), error.what());
    }
  }
  return states;
}

}  // namespace

nlohmann::json to_json(const std::optional<EvaluationRecord>& evaluation) {
  if (!evaluation) return nullptr;
  nlohmann::json json = {{"step", evaluation->step}, {"loss", evaluation->loss}};
  for (const MetricResult& metric : evaluation->metrics) json["metrics"][metric.name] = metric.results;
  return json;
}

nlohmann::json to_json(const CallbackStates& states) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [name, state] : states) {
    nlohmann::json& json = all[name] = nlohmann::json::object();
    for (const auto& [key, value] : state.values()) json[key] = json_of(value);
  }
  return all;
}

RunRecord run_record(const nlohmann::json& metadata, const std::string& file) {
  RunRecord record{.epoch = epoch_sums(metadata, file), .evaluation = {}, .callbacks = callback_states(metadata, file)};
  const char* key = "evaluation_due";
  try {
    record.evaluation_due = metadata.value(key, false);
    key = "evaluation";
    const nlohmann::json evaluation = metadata.value(key, nlohmann::json());
    if (evaluation.is_null()) return record;
    record.evaluation = {.step = evaluation.at("step").get<std::int64_t>(), .loss = number(evaluation.at("loss"))};
    const nlohmann::json metrics = evaluation.value("metrics", nlohmann::json::object());
    for (const auto& metric : metrics.items()) {
      record.evaluation->metrics.push_back({.name = metric.key()});
      for (const auto& result : metric.value()) record.evaluation->metrics.back().results.push_back(number(result));
    }
  } catch (const nlohmann::json::exception& error) {
    fail("resume", "{}: '{}' in its metadata cannot be used: {}", file, key, error.what());
  }
  return record;
}

}  // namespace lockstep::train
