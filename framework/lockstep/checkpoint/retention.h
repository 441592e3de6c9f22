// Which checkpoints of a run stay when a new one is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

struct Retention {
  enum class Best : std::uint8_t { None, Accuracy, Loss };

  std::int64_t last = 3;   // newest; 0: all
  std::int64_t every = 0;  // steps that are multiples of it, for ever; 0: none
  Best best = Best::None;  // highest accuracy or lowest loss, of those that were evaluated (file.h: Note)
  bool operator==(const Retention&) const = default;
};

// "last:3,every:1000,best:accuracy", in any order, each at most once; what is not named has its default. "5" is
// "last:5". Throws Error that names `place` and what was expected.
Retention parse_retention(std::string_view text, std::string_view place);

}  // namespace lockstep::checkpoint
