#include "lockstep/launch/host_list.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <numeric>

#include "lockstep/core/error.h"

namespace lockstep::launch {

std::string Host::login() const { return user.empty() ? name : user + "@" + name; }

const Host* HostList::find(std::string_view name) const {
  const auto found = std::ranges::find(hosts, name, &Host::name);
  return found == hosts.end() ? nullptr : &*found;
}

bool HostList::all_slots_said() const {
  return std::ranges::all_of(hosts, [](const Host& host) { return host.slots > 0; });
}

std::int64_t HostList::slots() const {
  return std::accumulate(hosts.begin(), hosts.end(), std::int64_t{0},
                         [](std::int64_t sum, const Host& host) { return sum + host.slots; });
}

void check_host_name(std::string_view site, std::string_view origin, std::string_view name) {
  constexpr std::string_view expected = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  check(!name.empty() && name.size() <= 255 && !name.starts_with('-') && name.find_first_not_of(expected) == name.npos,
        site, "{}: '{}' is no name of a host, expected letters, digits and . _ : -, perhaps after USER@", origin,
        name.substr(0, 80));
}

void set_login(Host& host, std::string_view login) {
  const std::size_t at = login.find('@');
  host.user = at == login.npos ? "" : login.substr(0, at);
  host.name = at == login.npos ? login : login.substr(at + 1);
}

bool names_host(std::span<const std::string> logins, std::string_view name) {
  return std::ranges::any_of(logins, [&](const std::string& login) {
    Host host;
    set_login(host, login);
    return host.name == name;
  });
}

std::int64_t slots_from(std::string_view text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= kMostSlots ? value : -1;
}

OwnNames OwnNames::of_this_machine() {
  std::ifstream file("/etc/hosts");
  return {.host = host::host_name(),
          .there = host::interfaces(),
          .listed = std::string(std::istreambuf_iterator<char>(file), {})};
}

bool is_this_machine(std::string_view name, const OwnNames& own) {
  if (const std::size_t at = name.find('@'); at != name.npos) name.remove_prefix(at + 1);
  const auto is_own = [&](const host::Address& address) {
    return std::ranges::find(own.there, address, &host::Interface::address) != own.there.end();
  };
  if (const auto address = host::parse_address(name)) return address->is_loopback() || is_own(*address);
  const auto first_label = [](std::string_view full) { return full.substr(0, full.find('.')); };
  if (name == "localhost" || name == own.host || first_label(name) == first_label(own.host)) return true;
  // A loopback address of another host's name is a mistake in the file, which the doctor finds.
  return std::ranges::any_of(host::listed_addresses(own.listed, name),
                             [&](const host::Address& address) { return !address.is_loopback() && is_own(address); });
}

}  // namespace lockstep::launch
