#include "lockstep/train/report/log_lines.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/folder.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kTime = "0000-00-00 00:00:00.000";  // 0 stands for a digit
constexpr std::string_view kLogLinesSite = "logs";
constexpr std::size_t kBlock = 1 << 16, kLongestLine = 1 << 20;  // bytes

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool begins_with_time(std::string_view line) {
  if (line.size() <= kTime.size() || line[kTime.size()] != ' ') return false;
  for (std::size_t i = 0; i < kTime.size(); ++i) {
    if (kTime[i] == '0' ? !is_digit(line[i]) : line[i] != kTime[i]) return false;
  }
  return true;
}

// Takes "info: " from the front of `rest`.
std::optional<LogLevel> take_level(std::string_view& rest) {
  const std::size_t end = rest.find(": ");
  const auto level = end == rest.npos ? std::nullopt : parse_log_level(rest.substr(0, end));
  if (level) rest.remove_prefix(end + 2);
  return level;
}

// Takes "node1 rank 3 " from the front of `rest`. A host's name has no blank.
bool take_origin(std::string_view& rest, LogLine& line) {
  constexpr std::string_view kRank = " rank ";
  const std::size_t host = rest.find(' ');
  if (host == rest.npos || rest.substr(host, kRank.size()) != kRank) return false;
  const std::string_view number = rest.substr(host + kRank.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), line.rank);
  const auto digits = static_cast<std::size_t>(end - number.data());
  if (error != std::errc() || line.rank < 0 || digits == number.size() || number[digits] != ' ') return false;
  line.host = rest.substr(0, host);
  rest.remove_prefix(host + kRank.size() + digits + 1);
  return true;
}

}  // namespace

std::string LogLine::str() const {
  const std::string origin = rank >= 0 ? fmt::format("{} rank {}", host.empty() ? "?" : host, rank) : "supervisor";
  if (time.empty()) return fmt::format("{:{}} {} | {}", "", kTime.size(), origin, text);
  return fmt::format("{} {} {}: {}", time, origin, name_of(level), text);
}

std::optional<LogLine> parse_log_line(std::string_view line) {
  if (!begins_with_time(line)) return std::nullopt;
  LogLine result{.time = std::string(line.substr(0, kTime.size()))};
  std::string_view rest = line.substr(kTime.size() + 1);
  auto level = take_level(rest);  // the supervisor's line has no origin
  if (!level) {
    if (!take_origin(rest, result)) return std::nullopt;
    level = take_level(rest);
  }
  if (!level) return std::nullopt;
  result.level = *level;
  result.text = rest;
  return result;
}

LogFileReader::LogFileReader(std::filesystem::path file, LogLine line)
    : file_(std::move(file)),
      before_(std::move(line)),
      descriptor_(io::open_own_file(file_, io::FileUse::Read, kLogLinesSite)) {}

// Reads a further block; returns false at the end of the file.
bool LogFileReader::fill() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  ssize_t n = 0;
  do {
    n = ::pread(descriptor_.get(), buffer_.data() + before, kBlock, offset_);
  } while (n < 0 && errno == EINTR);
  const int code = errno;
  buffer_.resize(before + static_cast<std::size_t>(n > 0 ? n : 0));
  check(n >= 0, kLogLinesSite, "cannot read {}: {}", file_.string(), std::strerror(code));
  offset_ += n;
  return n > 0;
}

LogLine LogFileReader::take(std::size_t length) {
  const std::string_view text(buffer_.data() + begin_, length);
  auto line = parse_log_line(text);
  if (line) {
    before_ = *line;
    before_.text.clear();
  } else {
    line = before_;
    line->time.clear();
    line->text = text;
  }
  return *std::move(line);
}

std::optional<LogLine> LogFileReader::next() {
  while (true) {
    const std::size_t end = buffer_.find('\n', searched_);
    const std::size_t length = (end == buffer_.npos ? buffer_.size() : end) - begin_;
    if (end != buffer_.npos || length >= kLongestLine) {
      LogLine line = take(length);
      begin_ += length + (end != buffer_.npos ? 1 : 0);
      searched_ = begin_;
      return line;
    }
    searched_ = buffer_.size();
    if (!fill()) return std::nullopt;
  }
}

std::optional<LogLine> LogFileReader::rest() {
  if (begin_ == buffer_.size()) return std::nullopt;
  LogLine line = take(buffer_.size() - begin_);
  begin_ = searched_ = buffer_.size();
  return line;
}

void LogFileReader::follow() {
  struct stat held {
  }, found{};
  if (::lstat(file_.c_str(), &found) != 0 || ::fstat(descriptor_.get(), &held) != 0) return;
  const bool same = held.st_dev == found.st_dev && held.st_ino == found.st_ino;
  if (same && found.st_size >= offset_) return;
  if (!same) descriptor_ = io::open_own_file(file_, io::FileUse::Read, kLogLinesSite);
  buffer_.clear();
  begin_ = searched_ = 0;
  offset_ = 0;
}

}  // namespace lockstep::train
