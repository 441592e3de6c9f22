#include "tools/supervisor/failure_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace lockstep::supervisor {
namespace {

constexpr std::size_t kLongestLine = 1024;  // what matters is shorter, and std::regex recurses for each character

}  // namespace

void FailureReader::read(std::string_view text) {
  rest_ += text;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find('\n', begin)) != rest_.npos; begin = end + 1) {
    line(rest_.substr(begin, std::min(end - begin, kLongestLine)));
  }
  rest_.erase(0, begin);
  rest_.resize(std::min(rest_.size(), kLongestLine));
}

void FailureReader::line(const std::string& text) {
  static const std::regex ended(R"(^(\S+: )?(rank \d+ on host \S+: .*))");
  static const std::regex agreed(
      R"(^(?!warning:|error:)[^\s:]+: (\[[^\]]+\] .*))");  // by all ranks, so that no rank is named
  static const std::regex signalled(
      R"(process rank (\d+) with PID \d+ on node (\S+) exited on (signal \d+ \([^)]*\)))");
  static const std::regex name(R"(^\s*Process name: \[.*,(\d+)\])");
  static const std::regex code(R"(^\s*Exit code: +(\d+))");
  static const std::regex daemon(R"(^\s*Remote daemon: .* on node (\S+))");
  std::smatch found;
  if (program_.empty() && std::regex_search(text, found, ended)) program_ = found[2];
  if (program_.empty() && std::regex_search(text, found, agreed)) program_ = found[1];
  line_of_hydra(text);
  lost_host_ = lost_host_ || std::regex_search(text, daemon);
  if (!mpirun_.empty()) return;
  if (text.find(" noticed that process rank ") != text.npos) {
    notice_ = text;
  } else if (!notice_.empty()) {
    notice_ = notice_.size() + text.size() < kLongestLine ? notice_ + ' ' + text : "";
  }
  if (std::regex_search(notice_, found, signalled)) {
    mpirun_ = fmt::format("rank {} on host {}: {}", found[1].str(), found[2].str(), found[3].str());
  } else if (std::regex_search(text, found, name)) {
    rank_ = found[1];
  } else if (!rank_.empty() && std::regex_search(text, found, code)) {
    mpirun_ = fmt::format("rank {}: exit code {}", rank_, found[1].str());
  } else if (std::regex_search(text, found, daemon)) {
    mpirun_ = fmt::format("host {}: connection lost", found[1].str());
  }
}

// In three lines: the process, its exit code and, for a signal, the signal's name.
void FailureReader::line_of_hydra(const std::string& text) {
  static const std::regex process(R"(^=\s+(?:RANK (\d+) )?PID (\d+) RUNNING AT (\S+))");
  static const std::regex code(R"(^=\s+EXIT CODE: (\d+))");
  static const std::regex signalled(R"(^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: (.*))");
  std::smatch found;
  if (mpirun_.empty() && std::regex_search(text, found, process)) {
    rank_ = fmt::format("{} on host {}", found[1].matched ? "rank " + found[1].str() : "process " + found[2].str(),
                        found[3].str());
  } else if (mpirun_.empty() && !rank_.empty() && std::regex_search(text, found, code)) {
    mpirun_ = fmt::format("{}: exit code {}", rank_, found[1].str());
  } else if (!rank_.empty() && std::regex_search(text, found, signalled)) {
    mpirun_ = fmt::format("{}: {}", rank_, found[1].str());
  }
}

std::string FailureReader::summary() const { return program_.empty() ? mpirun_ : program_; }

}  // namespace lockstep::supervisor
