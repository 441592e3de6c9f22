#include "tools/supervisor/lost_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tools/supervisor/hosts.h"

namespace lockstep::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

ProbeOptions LostHosts::probe_options() const {
  const std::string agents = command_.mca("plm_rsh_agent").value_or("ssh");
  ProbeOptions probe{.agent = words_of(agents.substr(0, agents.find(':'))),
                     .job = options_.job,
                     .traces = traces_.jobs(),
                     .limit = options_.limit};
  for (const std::string& word : words_of(command_.mca("plm_rsh_args").value_or(""))) probe.agent.push_back(word);
  return probe;
}

std::vector<std::string> LostHosts::ask_all() {
  std::vector<std::string> asked, reasons;
  for (const launch::Host& host : command_.hosts().hosts) {
    if (command_.starts_by_ssh() && !launch::is_this_machine(host.name)) asked.push_back(host.login());
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
