#include "lockstep/checkpoint/failure_log.h"

#include <array>
#include <bit>
#include <utility>

#include "lockstep/core/format.h"
#include "lockstep/core/log.h"

namespace lockstep::checkpoint {
namespace {

// "1st", "2nd", "3rd", "4th", "11th"
std::string ordinal(std::int64_t n) {
  constexpr std::array<const char*, 4> kEnds{"th", "st", "nd", "rd"};
  const auto last = static_cast<std::size_t>(n % 10);
  const bool regular = n / 10 % 10 == 1 || last >= kEnds.size();
  return formatted("{}{}", n, regular ? "th" : kEnds[last]);
}

}  // namespace

void FailureLog::failed(std::int64_t step, const std::string& reason, std::chrono::milliseconds retry, bool quiet) {
  if (++tries_ == 1) ++failed_;
  if (quiet) return;
  if (tries_ > 1) {
    if (std::has_single_bit(static_cast<std::uint64_t>(tries_)))
      log()->warn("checkpoint of step {} could not be written in {} tries: {}", step, tries_, reason);
  } else if (failed_ == 1) {
    log()->warn("checkpoint of step {} could not be written: {}; training goes on, next try in {:.0f} s", step, reason,
                std::chrono::duration<double>(retry).count());
  } else {
    log()->warn("checkpoint of step {} could not be written: {}; it is the {} failed checkpoint in a row", step, reason,
                ordinal(failed_));
  }
}

void FailureLog::succeeded(std::int64_t step) {
  const std::int64_t before = std::exchange(failed_, 0) - (tries_ > 0 ? 1 : 0);
  if (before > 0)
    log()->warn("checkpoint of step {} is written, after {} failed {}", step, before,
                before > 1 ? "checkpoints in a row" : "checkpoint");
}

}  // namespace lockstep::checkpoint
