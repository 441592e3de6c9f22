// The checkpoints of a run that stay when a new one is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

struct Retention {
  enum class Best : std::uint8_t { None, Accuracy, Loss };

  std::int64_t last = 3;   // number of newest checkpoints that stay; 0: all
  std::int64_t every = 0;  // checkpoints whose step is a multiple of this number stay for ever; 0: none
  Best best = Best::None;  // the evaluated checkpoint with the highest accuracy or the lowest loss stays (Score)
  bool operator==(const Retention&) const = default;
};

// Parses "last:3,every:1000,best:accuracy": the rules in any order, each at most once; a missing rule has its default.
// "5" means "last:5". Throws Error with `site` and the expected form.
Retention parse_retention(std::string_view text, std::string_view site);

}  // namespace lockstep::checkpoint
