// The checkpoints of a run that stay when a new one is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

struct Retention {
  static constexpr std::string_view kLoss = "loss";

  std::int64_t last = 3;   // number of newest checkpoints that stay; 0: all
  std::int64_t every = 0;  // checkpoints whose step is a multiple of this number stay for ever; 0: none
  std::string best = {};   // the evaluated checkpoint with the best value stays (Score): a metric's name, or kLoss
  bool higher_is_better = false;  // of `best`; the model's metric says so
  bool operator==(const Retention&) const = default;
};

// Parses "last:3,every:1000,best:NAME": the rules in any order, each at most once; a missing rule has its default.
// "5" means "last:5". Throws Error with `site` and the expected form.
Retention parse_retention(std::string_view text, std::string_view site);

}  // namespace lockstep::checkpoint
