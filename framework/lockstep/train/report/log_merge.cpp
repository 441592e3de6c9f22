#include "lockstep/train/report/log_merge.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLogFilesSite = "logs";

// Returns the rank of "rank-0012.log"; empty: another name.
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view kHead = "rank-", kTail = ".log";
  if (!name.starts_with(kHead) || !name.ends_with(kTail) || name.size() <= kHead.size() + kTail.size())
    return std::nullopt;
  const char *begin = name.data() + kHead.size(), *end = name.data() + name.size() - kTail.size();
  int rank = 0;
  const auto [stop, error] = std::from_chars(begin, end, rank);
  return error == std::errc() && stop == end && rank >= 0 ? std::optional(rank) : std::nullopt;
}

}  // namespace

bool LogFilter::wants(const LogLine& line) const {
  if (line.level < level) return false;
  if (!ranks.empty() && !ranks.contains(line.rank)) return false;
  return hosts.empty() || hosts.contains(line.host);
}

bool LogFiles::has_files(const fs::path& run) {
  std::error_code error;
  LogFiles files;
  files.folder_ = run / "logs";
  if (fs::is_directory(files.folder_, error)) files.find_files();
  return !files.sources_.empty();
}

LogFiles::LogFiles(const fs::path& run) {
  std::error_code error;
  if (fs::is_regular_file(run, error)) {
    only_ = run;
    add(run, {.rank = rank_of(run.filename().string()).value_or(-1)});
  } else {
    check(fs::is_directory(run, error), kLogFilesSite, "{} is no folder, expected that of a run (its --output)",
          run.string());
    folder_ = fs::is_directory(run / "logs", error) ? run / "logs" : run;
    find_files();
    check(!sources_.empty(), kLogFilesSite,
          "{} has no rank-NNNN.log and no HOST/rank-NNNN.log, expected the logs of a run", folder_.string());
  }
  for (const auto& source : sources_) advance(*source);
}

void LogFiles::add(const fs::path& path, LogLine line) {
  const bool known = std::ranges::any_of(sources_, [&](const auto& source) { return source->path == path; });
  if (!known) sources_.push_back(std::make_unique<Source>(Source{path, LogFileReader(path, std::move(line))}));
}

void LogFiles::find_files() {
  struct Found {
    int rank;
    fs::path path;
    std::string host;
    auto operator<=>(const Found&) const =
        default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 behind <=>
  };
  std::vector<Found> found;
  const auto look_in = [&](const fs::path& folder, const std::string& host, auto&& on_folder) {
    std::error_code error, gone;  // files may vanish meanwhile
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (const auto rank = rank_of(name); rank && at->is_regular_file(gone))
        found.push_back({*rank, at->path(), host});
      if (at->is_directory(gone)) on_folder(at->path(), name);
    }
  };
  look_in(folder_, "", [&](const fs::path& inner, const std::string& name) {
    look_in(inner, name, [](const fs::path&, const std::string&) {});
  });
  std::ranges::sort(found);
  for (const Found& file : found) add(file.path, {.host = file.host, .rank = file.rank});
  std::error_code error;
  const fs::path supervisor = folder_ / "supervisor.log";
  if (!found.empty() && fs::is_regular_file(supervisor, error)) add(supervisor, {});
}

void LogFiles::advance(Source& source) {
  source.head = source.reader.next();
  if (source.head) source.time = std::max(source.time, source.head->time);
}

// A run has as many files as ranks: a search through them costs less than printing the line.
std::optional<LogLine> LogFiles::next() {
  Source* first = nullptr;
  const bool goes_on = last_ != nullptr && last_->head && last_->head->time.empty();
  if (goes_on) first = last_;
  for (const auto& source : sources_) {
    if (goes_on || !source->head) continue;
    if (first == nullptr || source->time < first->time) first = source.get();
  }
  if (first == nullptr) return std::nullopt;
  LogLine line = *std::move(first->head);
  last_ = first;
  advance(*first);
  return line;
}

std::vector<LogLine> LogFiles::rest() {
  std::vector<LogLine> lines;
  for (const auto& source : sources_) {
    if (auto line = source->reader.rest()) lines.push_back(*std::move(line));
  }
  return lines;
}

void LogFiles::follow() {
  if (only_.empty()) find_files();
  for (const auto& source : sources_) {
    if (source->head) continue;
    advance(*source);
    if (source->head) continue;
    source->reader.follow();
    advance(*source);
  }
}

}  // namespace lockstep::train
