// Sums over the updates of an epoch so far, for the epoch's line and its record of metrics. Checkpoints contain them,
// so that a run resumed in the middle of an epoch ends it with the same means.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace lockstep::train {

struct EpochSums {
  std::int64_t epoch = -1;  // from 0; -1: no epoch
  double loss = 0, weight = 0;
  std::int64_t samples = 0;
  std::map<std::string, double> counts = {};
  // If set, the sums contain only the updates after this one, because a checkpoint had no sums of the earlier ones.
  std::optional<std::int64_t> after = {};

  double mean_loss() const { return weight > 0 ? loss / weight : 0; }
  // Returns the count's share of the samples; empty: the model has no such count.
  std::optional<double> fraction(const std::string& count) const;
  // Returns "training loss 0.4512, accuracy 85.31%; "; empty without samples. A model that does not count correct
  // predictions has no accuracy.
  std::string str() const;
};

// Writes sums as a checkpoint's metadata contain them, under kEpochSumsKey.
inline constexpr const char* kEpochSumsKey = "epoch_sums";
nlohmann::json to_json(const EpochSums& sums);
// Reads the sums of `metadata`; epoch is -1 if it has none. Throws Error with `file` if they are not as to_json()
// writes them.
EpochSums epoch_sums(const nlohmann::json& metadata, const std::string& file);

}  // namespace lockstep::train
