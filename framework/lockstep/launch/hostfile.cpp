#include "lockstep/launch/hostfile.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::launch {
namespace {

constexpr std::size_t kLongestLine = 1024;
constexpr const char* kSite = "hostfile";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string_view without_comment(std::string_view line) { return line.substr(0, line.find('#')); }

// "node1 slots = 8" gives "node1", "slots=8": Open MPI takes blanks around '='.
std::vector<std::string> words_of(std::string_view line) {
  std::string joined;
  for (const char c : without_comment(line)) {
    const bool blank = c == ' ' || c == '\t';
    if (c == '=') joined.erase(joined.find_last_not_of(' ') + 1);
    if (!blank) joined += c;
    if (blank && !joined.ends_with('=')) joined += ' ';
  }
  std::vector<std::string> words;
  std::istringstream stream(joined);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The characters that Open MPI would read in its own way, or not at all. A comment may have any bytes but zeros.
void check_text(std::string_view line, const std::string& here) {
  constexpr const char* kExpected = "expected text, with lines like 'node1 slots=8'";
  check(line.find('\0') == line.npos, kSite, "{}: a NUL byte; {}", here, kExpected);
  check(is_utf8(without_comment(line)), kSite, "{}: bytes that are no UTF-8; {}", here, kExpected);
  check(line.size() <= kLongestLine, kSite, "{}: a line of {} bytes, expected at most {}", here, line.size(),
        kLongestLine);
  check(!line.ends_with('\r'), kSite,
        "{}: the line ends as on Windows, which Open MPI refuses; expected Unix lines (sed -i 's/\\r$//' FILE)", here);
}

struct Line {
  Host host;
  bool slots_said = false;
};

void set_count(std::int64_t& member, const std::string& here, const std::string& key, const std::string& value) {
  member = slots_from(value);
  check(member >= 0, kSite, "{}: '{}={}', expected a number from 0 to {}, as in {}=8", here, key, value, kMostSlots,
        key);
}

void read_setting(Line& line, const std::string& word) {
  const std::string& here = line.host.origin;
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == word.npos ? "" : word.substr(equals + 1);
  if (key == "slots" || key == "cpu" || key == "count") {  // all three mean the same to Open MPI
    check(!line.slots_said, kSite, "{}: slots twice in one line, expected once", here);
    set_count(line.host.slots, here, key, value);
    line.slots_said = true;
  } else if (key == "max_slots" || key == "max-slots") {
    set_count(line.host.max_slots, here, key, value);
  } else if (key == "username" || key == "user_name") {
    check_host_name(kSite, here, value);
    line.host.user = value;
  } else {
    const bool number = equals == word.npos && slots_from(word) >= 0;
    fail(kSite, "{}: '{}' after the name of a host, expected {}", here, word.substr(0, 80),
         number ? "slots=" + word : "slots=NUMBER, max_slots=NUMBER or username=USER");
  }
}

void check_name_of_line(const Line& line, const std::string& word) {
  const std::string& here = line.host.origin;
  const std::size_t colon = word.rfind(':');
  check(word.find('=') == word.npos, kSite, "{}: the line begins with '{}', expected the name of a host first", here,
        word.substr(0, 80));
  check(colon == word.npos || word.find(':') != colon, kSite,
        "{}: '{}' is the form of -H and of MPICH; expected '{} slots={}'", here, word.substr(0, 80),
        word.substr(0, std::min<std::size_t>(colon, 80)), colon == word.npos ? "" : word.substr(colon + 1, 20));
  check_host_name(kSite, here, line.host.name);
  if (!line.host.user.empty()) check_host_name(kSite, here, line.host.user);
}

Line read_line(const std::vector<std::string>& words, const std::string& here) {
  Line line;
  line.host.origin = here;
  set_login(line.host, words[0]);
  check_name_of_line(line, words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) read_setting(line, words[i]);
  check(line.host.max_slots == 0 || line.host.max_slots >= line.host.slots, kSite,
        "{}: {} slots and max_slots={}, expected max_slots of at least {}", here, line.host.slots, line.host.max_slots,
        line.host.slots);
  return line;
}

// A name on a second line is one slot more. What Open MPI makes of the line: 1 if the first line has no count either.
void join(Line& first, const Line& second) {
  check(!second.slots_said, kSite,
        "{}: {} is named in {} already, and Open MPI 4.1 ends where slots are said again; expected one line "
        "'{} slots={}'",
        second.host.origin, first.host.name, first.host.origin, first.host.login(),
        std::max<std::int64_t>(1, first.host.slots) + second.host.slots);
  first.host.slots = first.slots_said ? first.host.slots + 1 : std::max<std::int64_t>(1, first.host.slots) + 1;
}

}  // namespace

HostList parse_hostfile(std::string_view text, const std::string& file) {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> places;  // of hosts in `lines`
  std::int64_t number = 0;
  for (const std::string& raw : lines_of(text)) {
    const std::string here = formatted("{}:{}", file, ++number);
    check_text(raw, here);
    const std::vector<std::string> words = words_of(raw);
    if (words.empty()) continue;
    Line line = read_line(words, here);
    const auto [known, is_new] = places.try_emplace(line.host.name, lines.size());
    if (is_new) {
      lines.push_back(std::move(line));
    } else {
      join(lines[known->second], line);
    }
  }
  HostList list;
  for (Line& line : lines) {
    if (!line.slots_said || line.host.slots > 0) list.hosts.push_back(std::move(line.host));
  }
  check(!list.hosts.empty(), kSite, "{} names no host{}, expected lines like 'node1 slots=8'", file,
        lines.empty() ? "" : " that takes a rank");
  return list;
}

std::string hostfile_without(std::string_view text, std::span<const std::string> lost) {
  std::string kept;
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> words = words_of(line);
    Host host;
    if (!words.empty()) set_login(host, words[0]);
    if (!names_host(lost, host.name)) kept += line + "\n";
  }
  return kept;
}

std::string to_hostfile(const HostList& list, std::string_view comment) {
  std::string text;
  for (const std::string& line : lines_of(comment)) text += "# " + line + "\n";
  for (const Host& host : list.hosts) {
    text += host.login();
    if (host.slots > 0) text += formatted(" slots={}", host.slots);
    if (host.max_slots > 0) text += formatted(" max_slots={}", host.max_slots);
    text += "\n";
  }
  return text;
}

}  // namespace lockstep::launch
