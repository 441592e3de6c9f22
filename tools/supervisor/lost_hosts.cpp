#include "tools/supervisor/lost_hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/supervisor/hosts.h"

namespace lockstep::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

ProbeOptions LostHosts::probe_options() const {
  return {.agent = command_.agent(), .job = options_.job, .traces = traces_.jobs(), .limit = options_.limit};
}

std::vector<std::string> LostHosts::ask_all() {
  std::vector<std::string> asked, reasons;
  const launch::OwnNames own = launch::OwnNames::of_this_machine();
  for (const launch::Host& host : command_.hosts().hosts) {
    if (command_.starts_by_ssh() && !launch::is_this_machine(host.name, own)) asked.push_back(host.login());
  }
  lost_.clear();
  for (const ProbeResult& result : Prober(probe_options(), asked).results()) {
    if (result.reason.empty()) continue;
    lost_.push_back(result.host);
    reasons.push_back(fmt::format("{} ({})", result.host, result.reason));
  }
  asked_ = Clock::now();
  return reasons;
}

std::optional<std::string> LostHosts::returned() {
  if (options_.rejoin.count() == 0 || lost_.empty()) return std::nullopt;
  if (!prober_) {
    if (Clock::now() < asked_ + options_.rejoin) return std::nullopt;
    prober_.emplace(probe_options(), lost_);
  }
  if (!prober_->done()) return std::nullopt;
  const std::vector<ProbeResult> results = prober_->results();
  prober_.reset();
  asked_ = Clock::now();
  const auto back = std::ranges::find(results, "", &ProbeResult::reason);
  return back == results.end() ? std::nullopt : std::optional(back->host);
}

}  // namespace lockstep::supervisor
