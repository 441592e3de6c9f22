#include "lockstep/launch/machinefile.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "machinefile";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Empty: the line names no host.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Host read_host(const std::vector<std::string>& words, const std::string& here) {
  Host host{.name = words[0].substr(0, words[0].find(':')), .origin = here};
  check(is_utf8(words[0]), kSite, "{}: bytes that are no UTF-8, expected lines like 'node1:8'", here);
  check_host_name(kSite, here, host.name);
  if (host.name.size() < words[0].size()) {
    host.slots = slots_from(words[0].substr(host.name.size() + 1));
    check(host.slots > 0, kSite, "{}: '{}', expected NAME or NAME:RANKS with 1 to {} ranks", here,
          words[0].substr(0, 80), kMostSlots);
  }
  constexpr std::string_view kUser = "user=";
  for (const std::string& word : words) {
    if (!word.starts_with(kUser)) continue;
    host.user = word.substr(kUser.size());
    check_host_name(kSite, here, host.user);
  }
  return host;
}

}  // namespace

HostList parse_machinefile(std::string_view text, const std::string& file) {
  HostList list;
  std::int64_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    Host host = read_host(words, formatted("{}:{}", file, number));
    const auto known = std::ranges::find(list.hosts, host.name, &Host::name);
    if (known == list.hosts.end()) {
      list.hosts.push_back(std::move(host));
    } else {
      known->slots += host.slots;
      check(known->slots <= kMostSlots, kSite, "{}: {} ranks of {} in all, expected at most {}", host.origin,
            known->slots, host.name, kMostSlots);
    }
  }
  check(!list.hosts.empty(), kSite, "{} names no host, expected lines like 'node1:8'", file);
  return list;
}

std::string machinefile_without(std::string_view text, std::span<const std::string> lost) {
  std::string kept;
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || !names_host(lost, words[0].substr(0, words[0].find(':')))) kept += line + "\n";
  }
  return kept;
}

}  // namespace lockstep::launch
