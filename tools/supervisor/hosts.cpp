#include "tools/supervisor/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <sstream>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::supervisor {
namespace {

std::optional<std::int64_t> count(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::string first_word(std::string_view line) {
  std::string word;
  std::istringstream(std::string(line.substr(0, line.find('#')))) >> word;
  return word;
}

void add(std::vector<Host>& hosts, const std::string& name, std::int64_t slots) {
  const auto known = std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  if (known == hosts.end()) {
    hosts.push_back({name, slots});
  } else {
    known->slots += slots;
  }
}

constexpr std::size_t kLongestLine = 1024;

// What Open MPI would read in its own way, or not at all. A comment may have any bytes but zeros.
void check_text(std::string_view line, const std::string& here) {
  constexpr const char* kExpected = "expected text, with lines like 'node1 slots=8'";
  check(line.find('\0') == line.npos, "hostfile", "{}: a NUL byte; {}", here, kExpected);
  check(is_utf8(line.substr(0, line.find('#'))), "hostfile", "{}: bytes that are no UTF-8; {}", here, kExpected);
}

// Names go to ssh and to mpirun as they are: nothing that looks like an option, or that a shell would read otherwise.
void check_name(const std::string& name, const std::string& place) {
  constexpr std::string_view expected = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-@";
  check(!name.starts_with('-') && name.find_first_not_of(expected) == name.npos, "hosts",
        "{}: '{}' is no name of a host, expected letters, digits and . _ : -, perhaps after USER@", place,
        name.substr(0, 80));
}

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::int64_t slots_of(std::span<const Host> hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), std::int64_t{0},
                         [](std::int64_t sum, const Host& host) { return sum + host.slots; });
}

}  // namespace

std::vector<Host> parse_hostfile(std::string_view text, const std::string& place) {
  std::vector<Host> hosts;
  std::int64_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::string here = fmt::format("{}:{}", place, ++number);
    check_text(line, here);
    check(line.size() <= kLongestLine, "hostfile", "{}: a line of {} bytes, expected at most {}", here, line.size(),
          kLongestLine);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, word;
    if (!(words >> name)) continue;
    check_name(name, here);
    std::int64_t slots = 0;
    while (words >> word) {
      const std::size_t equals = word.find('=');
      const std::string key = word.substr(0, equals);
      if (key != "slots" && key != "cpu" && key != "count") continue;  // all three mean the same to Open MPI
      const auto value = count(std::string_view(word).substr(std::min(equals, word.size() - 1) + 1));
      check(value.has_value(), "hostfile", "{}: '{}' in '{}', expected {}=NUMBER without blanks", here, word, line,
            key);
      slots = *value;
    }
    add(hosts, name, slots);
  }
  check(!hosts.empty(), "hostfile", "{} names no host, expected lines like 'node1 slots=8'", place);
  return hosts;
}

std::vector<Host> parse_host_list(std::string_view text) {
  std::vector<Host> hosts;
  for (const std::string& entry : split(text, ',')) {
    const std::size_t colon = entry.find(':');
    const auto slots = colon == entry.npos ? std::int64_t{1} : count(std::string_view(entry).substr(colon + 1));
    check(slots.has_value() && colon != 0 && !entry.empty(), "hosts", "'{}' in --host {}, expected NAME or NAME:SLOTS",
          entry, text);
    check_name(entry.substr(0, colon), "--host");
    add(hosts, entry.substr(0, colon), *slots);
  }
  return hosts;
}

std::string hostfile_without(std::string_view text, std::span<const std::string> lost) {
  std::string kept;
  for (const std::string& line : split(text, '\n')) {
    if (!contains(lost, first_word(line))) kept += line + "\n";
  }
  return kept;
}

std::string host_list_without(std::string_view text, std::span<const std::string> lost) {
  std::string kept;
  for (const std::string& entry : split(text, ',')) {
    if (contains(lost, std::string_view(entry).substr(0, entry.find(':')))) continue;
    kept += (kept.empty() ? "" : ",") + entry;
  }
  return kept;
}

std::optional<std::int64_t> ranks_for(std::span<const Host> alive, std::span<const Host> all,
                                      std::optional<std::int64_t> wanted) {
  if (!wanted || alive.size() == all.size()) return wanted;
  const bool said = std::all_of(all.begin(), all.end(), [](const Host& host) { return host.slots > 0; });
  const auto hosts = [](std::span<const Host> some) { return static_cast<std::int64_t>(some.size()); };
  if (!said) return *wanted * hosts(alive) / hosts(all);
  if (slots_of(all) < *wanted) return *wanted * slots_of(alive) / slots_of(all);
  return std::min(*wanted, slots_of(alive));
}

bool is_this_machine(std::string_view name) {
  if (const std::size_t at = name.find('@'); at != name.npos) name.remove_prefix(at + 1);
  if (name == "localhost" || name == "127.0.0.1" || name == "::1") return true;
  std::array<char, 256> own{};
  check(gethostname(own.data(), own.size() - 1) == 0, "hosts", "this machine has no name");
  const auto first_label = [](std::string_view full) { return full.substr(0, full.find('.')); };
  const bool address = name.find_first_not_of("0123456789.") == name.npos;
  return name == own.data() || (!address && first_label(name) == first_label(own.data()));
}

}  // namespace lockstep::supervisor
