#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/report/log_merge.h"
#include "lockstep/train/report/result_line.h"
#include "tools/commands.h"
#include "tools/usage.h"

namespace lockstep::tools {
namespace {

constexpr const char* kLogsHelp = R"(Examples:
  lockstep logs runs/train_resnet                         all ranks' lines in the order of their times
  lockstep logs runs/train_resnet --level warning         warnings and errors alone
  lockstep logs runs/train_resnet --rank 0,8-15 --follow  goes on until it is ended, as tail -f does
  lockstep logs runs/train_resnet --host node2,node3
A line without a time of its own (of a stack, or cut by a kill) stands below the line before it, with a | before its
text. Times are those of each host's clock: lockstep doctor shows how far clocks are apart.)";

constexpr std::chrono::milliseconds kLogsPause{200};  // between two looks at files that are followed

struct LogsOptions {
  std::string run, ranks, level = "trace";
  std::vector<std::string> hosts;
  bool follow = false, json = false;
};

// Returns the ranks of "0,8-15"; none for an empty text.
std::set<int> parse_ranks(const std::string& text) {
  std::set<int> ranks;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const bool plain = part.find_first_not_of("0123456789-") == std::string::npos && !part.ends_with('-') &&
                       part.find('-') == part.rfind('-');
    const std::vector<int> some = plain ? host::parse_cpu_list(part) : std::vector<int>();
    check(!some.empty(), "logs", "--rank is '{}', expected ranks as 0,8-15", text);
    ranks.insert(some.begin(), some.end());
  }
  return ranks;
}

train::LogFilter filter_of(const LogsOptions& o) {
  const auto level = parse_log_level(o.level);
  check(level.has_value(), "logs", "--level is '{}', expected one of trace, debug, info, warning, error, off", o.level);
  train::LogFilter filter{.level = *level};
  filter.hosts.insert(o.hosts.begin(), o.hosts.end());
  filter.ranks = parse_ranks(o.ranks);
  return filter;
}

// Without time: null. Of the supervisor: rank and host are null.
nlohmann::ordered_json json_of(const train::LogLine& line) {
  const auto known = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json record = {{"time", known(line.time)}, {"host", known(line.host)}, {"rank", nullptr}};
  if (line.rank >= 0) record["rank"] = line.rank;
  record["level"] = name_of(line.level);
  record["text"] = line.text;
  return record;
}

// Prints the lines that are wanted, and remembers the ranks and hosts of all.
class Printer {
 public:
  Printer(train::LogFilter filter, bool as_json) : filter_(std::move(filter)), as_json_(as_json) {}

  void operator()(const train::LogLine& line) {
    if (!line.host.empty()) hosts_.insert(line.host);
    if (line.rank >= 0) ranks_.insert(line.rank);
    if (!filter_.wants(line)) return;
    as_json_ ? train::print_result(json_of(line)) : fmt::print("{}\n", printable(line.str()));
  }
  // Throws Error where none of the ranks, or none of the hosts, that are wanted has a line.
  void check_found(const std::string& run) const {
    const auto none_of = [](const auto& wanted, const auto& found) {
      return !wanted.empty() && std::ranges::none_of(wanted, [&](const auto& each) { return found.contains(each); });
    };
    check(!none_of(filter_.ranks, ranks_), "logs", "{} has no line of --rank {}, expected some of ranks {}", run,
          listed(filter_.ranks), listed(ranks_));
    check(!none_of(filter_.hosts, hosts_), "logs", "{} has no line of --host {}, expected some of {}", run,
          listed(filter_.hosts), listed(hosts_));
  }

 private:
  static std::string listed(const auto& names) { return fmt::format("{}", fmt::join(names, ",")); }

  train::LogFilter filter_;
  bool as_json_;
  std::set<int> ranks_;
  std::set<std::string> hosts_;
};

bool has_log_line(const std::string& file) {
  train::LogFiles files(file);
  while (const auto line = files.next()) {
    if (!line->time.empty()) return true;
  }
  return std::ranges::any_of(files.rest(), [](const train::LogLine& line) { return !line.time.empty(); });
}

void show(const LogsOptions& o) {
  train::LogFilter filter;
  check_usage([&] { filter = filter_of(o); });
  Printer print(std::move(filter), o.json);
  check(o.follow || !std::filesystem::is_regular_file(o.run) || has_log_line(o.run), "logs",
        "{} has no line of a log, expected a rank's log file, as RUN/logs/rank-0000.log, or the folder of a run",
        o.run);
  train::LogFiles files(o.run);
  while (true) {
    while (const auto line = files.next()) print(*line);
    if (!o.follow) break;
    if (std::fflush(stdout) != 0) return;  // the reader of stdout has gone; the caller reports it
    std::this_thread::sleep_for(kLogsPause);
    files.follow();
  }
  for (const train::LogLine& line : files.rest()) print(line);
  print.check_found(o.run);
}

}  // namespace

void add_logs_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("logs", "Show the logs of all ranks of a run, merged by time");
  auto o = std::make_shared<LogsOptions>();
  command->add_option("run", o->run, "The folder of a run (its --output), or one log file")->required();
  command->add_option("--rank", o->ranks, "Only these ranks, as 0,8-15");
  command->add_option("--host", o->hosts, "Only these hosts, by their names in the log; a list with commas")
      ->delimiter(',');
  command
      ->add_option("--level", o->level,
                   "Only lines of this level or a higher one: trace, debug, info, warning, error; off: none")
      ->capture_default_str();
  command->add_flag("-f,--follow", o->follow, "Go on with lines that are written later, and with files that appear");
  command->add_flag("--json", o->json, "A line of JSON for each line: time, host, rank, level, text");
  command->footer(kLogsHelp);
  command->callback([o] { show(*o); });
}

}  // namespace lockstep::tools
