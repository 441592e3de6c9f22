#include "lockstep/train/callbacks/write_facts.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/train/report/step_profile.h"

namespace lockstep::train {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFactsName = "facts.json";

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

ordered_json profile_json(const Profile& profile) {
  std::vector<std::pair<std::string, double>> times;
  double known = 0;
  const auto add = [&](const std::string& name, double seconds) {
    known += seconds;
    if (seconds > 0) times.emplace_back(name, seconds);
  };
  for (const ProfileNode& node : by_class(profile)) add(node.op, node.sums.seconds);
  for (const ProfilePart& part : profile.parts) add(part.name, part.seconds);
  if (profile.seconds > known) add("other", profile.seconds - known);
  std::ranges::stable_sort(times, [](const auto& a, const auto& b) { return a.second > b.second; });
  ordered_json classes = ordered_json::array();
  for (const auto& [name, seconds] : times) classes.push_back(ordered_json{{"name", name}, {"seconds", seconds}});
  return {{"steps", profile.steps}, {"seconds", profile.seconds}, {"threads", profile.threads}, {"classes", classes}};
}

void WriteFacts::begin_run(std::int64_t step) {
  if (files_.metrics() == nullptr) return;  // another rank
  facts_ = {{"run", files_.run()},
            {"lockstep", LOCKSTEP_VERSION},
            {"began", seconds_since_1970()},
            {"began_at_step", step},
            {"options", options_}};
}

// Not before: a start that finds nothing left to do leaves the folder as it is.
void WriteFacts::begin_epoch(const EpochEvent& /*event*/) {
  if (facts_.empty() || written_) return;
  written_ = true;
  write();
}

void WriteFacts::end_run(const RunEnd& end) {
  if (!written_) return;
  facts_["ended"] = seconds_since_1970();
  facts_["ended_at_step"] = end.step;
  if (trainer_.profile() != nullptr) facts_["profile"] = profile_json(trainer_.profile()->result());
  write();
}

void WriteFacts::write() {
  const std::string text = facts_.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  try {
    io::replace_file(*files_.folder().folder(), kFactsName, text, "facts");
  } catch (const Error& error) {
    log()->warn("[facts] {}; training goes on, and lockstep report shows no options of this run", error.what());
  }
}

}  // namespace lockstep::train
