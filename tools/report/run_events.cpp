#include "tools/report/run_events.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace lockstep::tools {
namespace {

// Returns the number that follows `words` in a text, or -1.
double number_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return -1;
  const std::string_view rest = text.substr(at + words.size());
  double value = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return error == std::errc() ? value : -1;
}

// The kind of a line of rank 0 or of the supervisor that no level tells; empty: none.
std::string kind_of_line(const train::LogLine& line) {
  const std::string& text = line.text;
  if (line.rank == 0 && text.starts_with("this is run ")) return "start";
  if (line.rank == 0 && text.starts_with("resumed ")) return "resume";
  if (line.rank == 0 && text.starts_with("stopped after a checkpoint")) return "stop";
  if (line.rank >= 0) return "";
  if (text.starts_with("start ")) return "start";
  return text.starts_with("ended after ") && text.find(": exit code 0;") == std::string::npos ? "fault" : "";
}

// A run has a log for each rank, and all are held open.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, opening a file says so
}

}  // namespace

std::int64_t step_of_progress(const std::string& text) {
  if (!text.starts_with("epoch ")) return -1;
  const double step = number_after(text, "  step ");
  return step >= 0 && step < 9e15 ? static_cast<std::int64_t>(step) : -1;
}

bool RunEvents::update() {
  if (!files_) {
    allow_many_files();
    if (!train::LogFiles::has_files(run_)) return false;
    files_ = std::make_unique<train::LogFiles>(run_);
  } else {
    files_->follow();
  }
  bool changed = false;
  while (const auto line = files_->next()) {
    add(*line);
    changed = true;
  }
  return changed;
}

void RunEvents::add(const train::LogLine& line) {
  if (line.time.empty()) return;  // a part of a stack
  if (line.rank >= 0) {
    Rank& rank = ranks_[line.rank];
    if (!line.host.empty()) rank.host = line.host;
    if (const double mib = number_after(line.text, "memory: at most "); mib >= 0)
      rank.memory_mib = std::max(rank.memory_mib, mib);
    if (line.level == LogLevel::Warning) ++rank.warnings;
    if (line.level == LogLevel::Error) ++rank.errors;
  }
  if (line.rank == 0) {
    if (const std::int64_t step = step_of_progress(line.text); step >= 0) step_ = step;
    if (line.text.starts_with("resumed ")) {
      const double at = number_after(line.text, " at step ");
      if (at >= 0 && at < 9e15) step_ = static_cast<std::int64_t>(at);
    }
  }
  if (line.level == LogLevel::Error) return add_event(line, "fault");
  if (line.level == LogLevel::Warning) return add_event(line, "warning");
  if (const std::string kind = kind_of_line(line); !kind.empty()) add_event(line, kind);
}

void RunEvents::add_event(const train::LogLine& line, const std::string& kind) {
  if (kind == "resume") resumed_ = true;
  if (kind == "start" && line.rank == 0) {
    if (std::exchange(resumed_, false)) return;  // the line that follows that of a resume
    begin_run();
  }
  const std::size_t near = std::min<std::size_t>(events_.size(), 16);
  for (std::size_t i = events_.size() - near; i < events_.size(); ++i) {
    Event& event = events_[i];
    if (event.step != step_ || event.text != line.text || event.kind != kind) continue;
    ++event.count;
    return;
  }
  events_.push_back({step_, line.time, kind, line.text, line.rank, line.host, 1});
  if (events_.size() <= kMost) return;
  events_.erase(events_.begin() + kMost / 2);
  ++left_out_;
}

// Another run begins in the same folder, whose logs are appended to: events of the one before are not of this one.
void RunEvents::begin_run() {
  step_ = left_out_ = 0;
  events_.clear();
  for (auto& [number, rank] : ranks_) rank = {.host = rank.host};
}

nlohmann::ordered_json RunEvents::events() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Event& e : events_)
    all.push_back(nlohmann::ordered_json{{"step", e.step},
                                         {"time", e.time},
                                         {"kind", e.kind},
                                         {"text", e.text},
                                         {"rank", e.rank},
                                         {"host", e.host},
                                         {"count", e.count}});
  return all;
}

nlohmann::ordered_json RunEvents::ranks() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [number, rank] : ranks_) {
    nlohmann::ordered_json entry = {{"rank", number}, {"host", rank.host}, {"memory_mib", nullptr}};
    if (rank.memory_mib >= 0) entry["memory_mib"] = rank.memory_mib;
    entry["warnings"] = rank.warnings;
    entry["errors"] = rank.errors;
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace lockstep::tools
