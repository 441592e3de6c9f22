#include "lockstep/checkpoint/retention.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::checkpoint {
namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Parses one rule into `retention`; returns false if the text is not a rule.
bool take(std::string_view rule, Retention& retention, std::string& seen) {
  const std::size_t colon = rule.find(':');
  const std::string_view key = colon == rule.npos ? "last" : rule.substr(0, colon);
  const std::string_view value = colon == rule.npos ? rule : rule.substr(colon + 1);
  const std::string mark = fmt::format("{} ", key);
  if (seen.find(mark) != seen.npos) return false;
  seen += mark;
  if (key == "best") {
    retention.best = value;
    return !value.empty();
  }
  const auto number = whole_number(value);
  if (key == "last") retention.last = number.value_or(0);
  if (key == "every") retention.every = number.value_or(0);
  return number && (key == "last" || (key == "every" && *number > 0));
}

}  // namespace

Retention parse_retention(std::string_view text, std::string_view site) {
  Retention retention;
  std::string seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    check(take(text.substr(begin, end - begin), retention, seen), site,
          "--keep is '{}', expected a number of newest checkpoints (0: all), or some of last:K, every:N and "
          "best:NAME (loss, or a metric), each kind once, with commas between",
          text);
    begin = end + 1;
  }
  return retention;
}

}  // namespace lockstep::checkpoint
