#include "tools/report/run_report.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/core/error.h"
#include "lockstep/train/report/json_text.h"
#include "tools/report/work_kind.h"

namespace lockstep::tools {
namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

// `watch` reads runs, too.
constexpr const char* kReportSite = "run";
constexpr std::uintmax_t kLargestTrace = std::uintmax_t{1} << 30;   // bytes
constexpr std::uintmax_t kLargestFacts = std::uintmax_t{16} << 20;  // a thousand times what a run writes

std::string whole_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// facts.json, or nothing where there is none.
std::string facts_of(const fs::path& run) {
  const fs::path file = run / "facts.json";
  if (!fs::is_regular_file(file)) return "";
  const std::uintmax_t size = fs::file_size(file);
  check(size <= kLargestFacts, kReportSite, "{} has {} bytes, expected at most {}: the facts of a run", file.string(),
        size, kLargestFacts);
  return whole_text(file);
}

// Returns "rank 3 on node1" in parts.
std::pair<int, std::string> rank_and_host(const std::string& process) {
  const std::size_t on = process.find(" on ");
  if (!process.starts_with("rank ") || on == std::string::npos) return {-1, process};
  return {std::atoi(process.c_str() + 5), process.substr(on + 4)};
}

bool has_text(const nlohmann::json& object, const char* name, const char* text) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() && *found == text;
}

// Whether an event has these members with the types that --trace writes.
bool is_metadata(const nlohmann::json& event) {
  return event.is_object() && has_text(event, "ph", "M") && event.contains("pid") && event["pid"].is_number_integer() &&
         event.contains("args") && event["args"].is_object() && event["args"].contains("name") &&
         event["args"]["name"].is_string() && event.contains("name") && event["name"].is_string();
}
bool is_span(const nlohmann::json& event) {
  return event.is_object() && has_text(event, "ph", "X") && event.contains("pid") && event["pid"].is_number_integer() &&
         event.contains("tid") && event["tid"].is_number_integer() && event.contains("dur") && event["dur"].is_number();
}

struct TracedRank {
  int rank = -1;
  std::string host;
  std::map<std::int64_t, std::string> names;    // of tracks
  std::map<std::int64_t, double> microseconds;  // by track
};

}  // namespace

ordered_json trace_times(const fs::path& file) {
  check(fs::is_regular_file(file), kReportSite, "--trace {} is no file, expected one that --trace has written",
        file.string());
  check(fs::file_size(file) < kLargestTrace, kReportSite, "--trace {} has {} bytes, expected less than {}",
        file.string(), fs::file_size(file), kLargestTrace);
  const nlohmann::json json = train::parse_json(whole_text(file));
  check(json.is_object() && json.contains("traceEvents") && json["traceEvents"].is_array(), kReportSite,
        "--trace {} has no 'traceEvents', expected a file that --trace has written", file.string());
  std::map<std::int64_t, TracedRank> ranks;
  for (const auto& event : json["traceEvents"]) {
    if (is_metadata(event)) {
      TracedRank& rank = ranks[event["pid"].get<std::int64_t>()];
      const std::string name = event["args"]["name"].get<std::string>();
      if (event["name"] == "process_name") std::tie(rank.rank, rank.host) = rank_and_host(name);
      if (event["name"] == "thread_name" && event.contains("tid") && event["tid"].is_number_integer())
        rank.names[event["tid"].get<std::int64_t>()] = name;
    } else if (is_span(event)) {
      ranks[event["pid"].get<std::int64_t>()].microseconds[event["tid"].get<std::int64_t>()] +=
          event["dur"].get<double>();
    }
  }
  ordered_json all = ordered_json::array();
  for (const auto& [process, rank] : ranks) {
    ordered_json tracks = ordered_json::object();
    for (const auto& [track, us] : rank.microseconds) {
      const auto name = rank.names.find(track);
      if (name != rank.names.end()) tracks[name->second] = 1e-6 * us;
    }
    all.push_back(ordered_json{{"rank", rank.rank}, {"host", rank.host}, {"tracks", std::move(tracks)}});
  }
  return all;
}

RunReport::RunReport(fs::path run) : run_(std::move(run)), metrics_(run_ / "metrics.jsonl"), events_(run_) {
  check(fs::is_directory(run_), kReportSite, "{} is no folder, expected that of a run (its --output)", run_.string());
  const bool known = fs::exists(run_ / "metrics.jsonl") || fs::exists(run_ / "run.json") || fs::exists(run_ / "logs");
  check(known, kReportSite, "{} has neither metrics.jsonl, run.json nor logs, expected the folder of a run",
        run_.string());
}

bool RunReport::update() {
  const bool metrics = metrics_.update(), events = events_.update();
  std::string text = facts_of(run_);
  const bool facts = text != facts_text_;
  if (facts) {
    auto json = train::parse_json<ordered_json>(text);
    facts_ = json.is_object() ? std::move(json) : ordered_json::object();
    facts_text_ = std::move(text);
  }
  return metrics || events || facts;
}

void RunReport::add_trace(const fs::path& file) { trace_ = trace_times(file); }

namespace {

// Each class of work with its kind, which gives it its colour.
ordered_json with_kinds(ordered_json profile) {
  if (!profile.is_object() || !profile.contains("classes") || !profile["classes"].is_array()) return profile;
  for (ordered_json& entry : profile["classes"]) {
    if (entry.is_object() && entry.contains("name") && entry["name"].is_string())
      entry["kind"] = look_of(work_kind(entry["name"].get_ref<const std::string&>())).name;
  }
  return profile;
}

}  // namespace

ordered_json RunReport::json() const {
  const auto fact = [&](const char* name) { return facts_.contains(name) ? facts_[name] : ordered_json(); };
  ordered_json options = fact("options");
  if (!options.is_object()) options = ordered_json::object();
  const auto id = checkpoint::read_run_id(io::Folder(run_));
  return {{"name", run_.string()},
          {"run", id ? ordered_json(*id) : ordered_json()},
          {"began", fact("began")},
          {"ended", fact("ended")},
          {"last_step", metrics_.last_step()},
          {"bad_lines", metrics_.bad_lines()},
          {"options", std::move(options)},
          {"profile", with_kinds(fact("profile"))},
          {"series", metrics_.series()},
          {"totals", metrics_.totals()},
          {"ranks", events_.ranks()},
          {"events", events_.events()},
          {"events_left_out", events_.left_out()},
          {"trace", trace_}};
}

ordered_json report_document(const std::vector<RunReport>& runs, bool live) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  ordered_json all = ordered_json::array();
  for (const RunReport& run : runs) all.push_back(run.json());
  return {{"format", 1},
          {"lockstep", LOCKSTEP_VERSION},
          {"generated", now.count()},
          {"live", live},
          {"runs", std::move(all)}};
}

}  // namespace lockstep::tools
