#include "lockstep/launch/host_option.h"

#include <map>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "hosts";

std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  for (;;) {
    const std::size_t comma = text.find(',');
    entries.push_back(text.substr(0, comma));
    if (comma == text.npos) return entries;
    text.remove_prefix(comma + 1);
  }
}

// The part before the count, without brackets, and the count: empty if there is none.
struct Entry {
  std::string user, name, count;
  bool well_formed = true;
};

Entry split(std::string_view text) {
  Entry entry;
  if (const std::size_t at = text.find('@'); at != text.npos) {
    entry.user = text.substr(0, at);
    entry.well_formed = at > 0;
    text.remove_prefix(at + 1);
  }
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == text.npos) return entry.well_formed = false, entry;
    entry.name = text.substr(1, bracket - 1);
    rest = text.substr(bracket + 1);
    entry.well_formed = entry.well_formed && (rest.empty() || rest.starts_with(':'));
  } else {
    entry.name = text.substr(0, text.find(':'));
    rest = text.substr(entry.name.size());
    entry.well_formed = entry.well_formed && rest.find(':', 1) == rest.npos;
  }
  if (!rest.empty()) {
    entry.count = rest.substr(1);
    entry.well_formed = entry.well_formed && !entry.count.empty();
  }
  entry.well_formed = entry.well_formed && !entry.name.empty();
  return entry;
}

}  // namespace

HostList parse_host_list(std::string_view text, const std::string& option) {
  HostList list;
  std::map<std::string, std::size_t> places;  // of hosts in the list
  std::int64_t number = 0;
  check(is_utf8(text), kSite, "{}: bytes that are no UTF-8, expected a list like a:8,b:8", option);
  for (const std::string_view word : entries_of(text)) {
    const std::string here = formatted("{}, entry {}", option, ++number);
    const Entry entry = split(word);
    check(entry.well_formed, kSite, "{}: '{}', expected NAME, NAME:SLOTS or, for IPv6, [ADDRESS]:SLOTS", here,
          word.substr(0, 80));
    const std::int64_t slots = entry.count.empty() ? 1 : entry.count == "*" ? 0 : slots_from(entry.count);
    check(slots > 0 || entry.count == "*", kSite, "{}: '{}' has '{}' slots, expected a number from 1 to {}", here,
          word.substr(0, 80), entry.count.substr(0, 80), kMostSlots);
    check_host_name(kSite, here, entry.name);
    if (!entry.user.empty()) check_host_name(kSite, here, entry.user);
    const auto [known, is_new] = places.try_emplace(entry.name, list.hosts.size());
    if (is_new) {
      list.hosts.push_back({.name = entry.name, .user = entry.user, .slots = slots, .origin = here});
    } else {
      Host& host = list.hosts[known->second];
      host.slots = host.slots == 0 || slots == 0 ? 0 : host.slots + slots;
      check(host.slots <= kMostSlots, kSite, "{}: {} slots of {} in all, expected at most {}", here, host.slots,
            entry.name, kMostSlots);
    }
  }
  return list;
}

std::string host_list_without(std::string_view text, std::span<const std::string> lost) {
  std::string kept;
  for (const std::string_view word : entries_of(text)) {
    if (names_host(lost, split(word).name)) continue;
    if (!kept.empty()) kept += ',';
    kept += word;
  }
  return kept;
}

std::string to_host_list(const HostList& list) {
  std::string text;
  for (const Host& host : list.hosts) {
    if (!text.empty()) text += ',';
    if (!host.user.empty()) text += host.user + "@";
    text += host.name.find(':') == std::string::npos ? host.name : "[" + host.name + "]";
    text += host.slots > 0 ? formatted(":{}", host.slots) : ":*";
  }
  return text;
}

}  // namespace lockstep::launch
