#include "lockstep/train/report/epoch_sums.h"

#include <fmt/format.h>

#include "lockstep/core/error.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {

std::optional<double> EpochSums::fraction(const std::string& count) const {
  const auto found = counts.find(count);
  if (found == counts.end()) return std::nullopt;
  return samples == 0 ? 0 : found->second / static_cast<double>(samples);
}

std::string EpochSums::str() const {
  if (samples == 0) return "";
  const std::string part =
      after ? fmt::format(" (of the steps after {}: the checkpoint has no sums of earlier steps)", *after) : "";
  const std::optional<double> accuracy = fraction("correct");
  return fmt::format("training loss {:.4f}{}{}; ", mean_loss(),
                     accuracy ? fmt::format(", accuracy {:.2f}%", 100 * *accuracy) : "", part);
}

nlohmann::json to_json(const EpochSums& sums) {
  if (sums.epoch < 0) return nullptr;
  nlohmann::json json = {{"epoch", sums.epoch},
                         {"loss", sums.loss},
                         {"weight", sums.weight},
                         {"samples", sums.samples},
                         {"counts", sums.counts}};
  if (sums.after) json["after"] = *sums.after;
  return json;
}

EpochSums epoch_sums(const nlohmann::json& metadata, const std::string& file) {
  const auto found = metadata.find(kEpochSumsKey);
  if (found == metadata.end() || found->is_null()) return {};
  EpochSums sums;
  try {
    sums.epoch = found->at("epoch").get<std::int64_t>();
    sums.loss = number(found->at("loss"));
    sums.weight = number(found->at("weight"));
    sums.samples = found->at("samples").get<std::int64_t>();
    for (const auto& count : found->at("counts").items()) sums.counts[count.key()] = number(count.value());
    if (found->contains("after")) sums.after = found->at("after").get<std::int64_t>();
  } catch (const nlohmann::json::exception& error) {
    fail("resume", "{}: '{}' in its metadata cannot be used: {}", file, kEpochSumsKey, error.what());
  }
  check(sums.epoch >= 0 && sums.samples >= 0, "resume", "{}: '{}' in its metadata is of epoch {} with {} samples", file,
        kEpochSumsKey, sums.epoch, sums.samples);
  return sums;
}

}  // namespace lockstep::train
