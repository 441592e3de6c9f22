#include "lockstep/launch/host_list.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
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

bool is_this_machine(std::string_view name) {
  if (const std::size_t at = name.find('@'); at != name.npos) name.remove_prefix(at + 1);
  if (name == "localhost" || name == "127.0.0.1" || name == "::1") return true;
  std::array<char, 256> own{};
  check(gethostname(own.data(), own.size() - 1) == 0, "hosts", "this machine has no name");
  const auto first_label = [](std::string_view full) { return full.substr(0, full.find('.')); };
  const bool address = name.find_first_not_of("0123456789.") == name.npos;
  return name == own.data() || (!address && first_label(name) == first_label(own.data()));
}

}  // namespace lockstep::launch
