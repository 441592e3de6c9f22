#include "tools/supervisor/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::supervisor {

using std::chrono::milliseconds;

milliseconds RestartPolicy::pause(std::int64_t n) const {
  constexpr milliseconds longest = std::chrono::minutes(5);
  milliseconds pause = std::min(options_.backoff, longest);
  for (std::int64_t i = 1; i < n && pause < longest; ++i) pause = std::min(2 * pause, longest);
  return pause;
}

RestartPolicy::Decision RestartPolicy::after(const End& end) {
  if (end.no_hosts) return {.restart = true, .pause = pause(++waits_), .reason = "waiting for hosts"};
  waits_ = 0;
  const bool came_forward = end.own && end.newest_step > newest_step_;
  if (came_forward) failures_ = 0;
  const bool again = !came_forward && !end.error.empty() && end.error == last_error_ && end.code == last_code_;
  last_error_ = end.error;
  last_code_ = end.code;
  newest_step_ = std::max(newest_step_, end.newest_step);
  if (end.code == 0) return {.reason = "done"};
  if (end.asked) return {.reason = "ended on request"};
  if (end.code == kExitStopped && end.for_host) return {.restart = true, .reason = "stopped to take a host back"};
  if (end.code == kExitStopped && !options_.restart_on_stop)
    return {.reason = "stopped in good order; the same command goes on, --restart-on-stop would have at once"};
  if (end.code == kExitUntrusted) return {.reason = "its results cannot be trusted: look at its log before going on"};
  if (end.code == kExitCommandLine || end.code == 126 || end.code == 127)
    return {.reason = "another start of this command would fail alike"};
  if (again) return {.reason = "it failed twice alike, soon after its start; another start would too"};
  if (++failures_ > options_.max_restarts) {
    return {.reason = fmt::format("{} ends without a newer checkpoint, --max-restarts is {}", failures_,
                                  options_.max_restarts)};
  }
  return {.restart = true,
          .pause = end.code == kExitStopped && failures_ == 1 ? milliseconds(0) : pause(failures_),
          .reason = came_forward
                        ? fmt::format("restart from step {}", newest_step_)
                        : fmt::format("restart {} of {} without a newer checkpoint", failures_, options_.max_restarts)};
}

}  // namespace lockstep::supervisor
