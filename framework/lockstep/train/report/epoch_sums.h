// What an epoch's line and record of metrics are made of: sums over its updates so far, which checkpoints keep, so that
// a run that is resumed in the middle of an epoch ends it with the same means.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep::train {

struct EpochSums {
  std::int64_t epoch = -1;  // from 0; -1: of none
  double loss = 0, weight = 0;
  std::int64_t samples = 0;
  std::map<std::string, double> counts = {};
  // Only of the updates after this one: those before are not known, from a checkpoint that has no sums.
  std::optional<std::int64_t> after = {};

  double mean_loss() const { return weight > 0 ? loss / weight : 0; }
  double fraction(const std::string& count) const;
  // "training loss 0.4512, accuracy 85.31%; ", empty without samples.
  std::string str() const;
};

// As a checkpoint's metadata hold them, under kEpochSumsKey.
inline constexpr const char* kEpochSumsKey = "epoch_sums";
nlohmann::json to_json(const EpochSums& sums);
// Of epoch -1 where `metadata` have none. Throws Error that names `place` where they are not what to_json() writes.
EpochSums epoch_sums(const nlohmann::json& metadata, const std::string& place);

}  // namespace lockstep::train
