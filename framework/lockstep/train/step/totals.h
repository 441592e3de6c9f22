// What a step or an evaluation came to, over all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::train {

// What became of a step.
enum class StepOutcome : std::uint8_t { Applied, Skipped, RolledBack };

// Means over all samples of a step, or of an evaluation, on every rank the same.
struct Totals {
  double loss = 0, weight = 0;  // sum of weights: samples unless the loss has its own
  std::int64_t samples = 0;
  std::map<std::string, double> counts = {};
  bool whole = true;  // false: a request ended the evaluation early, and these are sums of a part
  StepOutcome outcome = StepOutcome::Applied;  // RolledBack: nothing else is told, the next batch is an earlier one

  double fraction(const std::string& count) const {
    const auto found = counts.find(count);
    return found == counts.end() || samples == 0 ? 0 : found->second / static_cast<double>(samples);
  }
};

}  // namespace lockstep::train
