#include "lockstep/launch/rank_table.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/host/address.h"
#include "lockstep/launch/located_json.h"

namespace lockstep::launch {
namespace {

using Kind = LocatedJson::Kind;
constexpr const char* kSite = "rank table";

struct Device {
  std::int64_t rank = 0, id = 0, line = 0;
  std::string server, address;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : file_(file), root_(parse_located_json(text, file)) {
    check(root_.kind == Kind::Object, kSite, "{}: expected one object with server_list or group_list", at(root_.line));
    if (const LocatedJson* status = root_.find("status")) {
      check(status->text == "completed", kSite,
            "{}: status is '{}', expected 'completed': the table is not whole yet, or ranks are missing",
            at(status->line), status->text.substr(0, 40));
    }
    const bool older = root_.find("server_list") == nullptr && root_.find("group_list") != nullptr;
    older ? read_groups() : read_servers();
  }

  const std::vector<Device>& devices() const { return devices_; }
  std::string at(std::int64_t line) const { return formatted("{}:{}", file_, line); }

 private:
  const LocatedJson& member(const LocatedJson& object, const char* name) const {
    check(object.kind == Kind::Object, kSite, "{}: expected an object with {}", at(object.line), name);
    const LocatedJson* found = object.find(name);
    check(found != nullptr, kSite, "{}: no {} here, expected one", at(object.line), name);
    return *found;
  }

  const LocatedJson& list(const LocatedJson& object, const char* name) const {
    const LocatedJson& found = member(object, name);
    check(found.kind == Kind::List && !found.items.empty(), kSite, "{}: {} is no list or an empty one, expected [...]",
          at(found.line), name);
    return found;
  }

  std::int64_t number(const LocatedJson& value, const char* name) const {
    const std::int64_t found =
        value.kind == Kind::Text || value.kind == Kind::Number ? slots_from(value.text) : std::int64_t{-1};
    check(found >= 0, kSite, "{}: {} is '{}', expected a number from 0 to {}", at(value.line), name,
          value.text.substr(0, 40), kMostSlots);
    return found;
  }

  std::string server_id(const LocatedJson& server) const {
    const LocatedJson& id = member(server, "server_id");
    check(id.kind == Kind::Text, kSite, "{}: server_id is no text, expected the host's address or name", at(id.line));
    check_host_name(kSite, at(id.line) + ": server_id", id.text);
    return id.text;
  }

  // `count` of the object, if there is one, has to be the number of entries in `of`.
  void check_count(const LocatedJson& object, const char* count, const LocatedJson& of, const char* name) const {
    const LocatedJson* said = object.find(count);
    if (said == nullptr) return;
    const auto entries = static_cast<std::int64_t>(of.items.size());
    check(number(*said, count) == entries, kSite, "{}: {} is {}, but {} has {} entries", at(said->line), count,
          said->text.substr(0, 40), name, entries);
  }

  void add_device(const LocatedJson& device, const LocatedJson& rank, const std::string& server) {
    const LocatedJson& id = member(device, "device_id");
    Device read{.rank = number(rank, "rank_id"), .id = number(id, "device_id"), .line = rank.line, .server = server};
    if (const LocatedJson* address = device.find("device_ip")) {
      check(address->text.empty() || host::parse_address(address->text), kSite,
            "{}: device_ip is '{}', expected an address such as 10.1.0.7, or none", at(address->line),
            address->text.substr(0, 60));
      read.address = address->text;
    }
    devices_.push_back(read);
  }

  void read_servers() {
    if (const LocatedJson* version = root_.find("version")) {
      check(version->text == "1.0" || version->text == "1", kSite, "{}: version is '{}', expected 1.0",
            at(version->line), version->text.substr(0, 40));
    }
    const LocatedJson& servers = list(root_, "server_list");
    check_count(root_, "server_count", servers, "server_list");
    std::map<std::string, std::int64_t> seen;
    for (const LocatedJson& server : servers.items) {
      const std::string name = server_id(server);
      const std::int64_t line = member(server, "server_id").line;
      const auto [known, is_new] = seen.emplace(name, line);
      check(is_new, kSite, "{}: server_id {} is in line {} already, expected each server once", at(line), name,
            known->second);
      for (const LocatedJson& device : list(server, "device").items)
        add_device(device, member(device, "rank_id"), name);
    }
  }

  void read_groups() {
    const LocatedJson& groups = list(root_, "group_list");
    check_count(root_, "group_count", groups, "group_list");
    for (const LocatedJson& group : groups.items) {
      const LocatedJson& instances = list(group, "instance_list");
      check_count(group, "instance_count", instances, "instance_list");
      check_count(group, "device_num", instances, "instance_list");
      std::map<std::string, int> servers;
      for (const LocatedJson& instance : instances.items) {
        const LocatedJson& devices = list(instance, "devices");
        check(devices.items.size() == 1, kSite, "{}: devices has {} entries, expected one for each rank",
              at(devices.line), devices.items.size());
        const std::string server = server_id(instance);
        servers[server] += 1;
        add_device(devices.items[0], member(instance, "rank_id"), server);
      }
      const LocatedJson* said = group.find("server_num");
      check(said == nullptr || number(*said, "server_num") == static_cast<std::int64_t>(servers.size()), kSite,
            "{}: server_num is {}, but instance_list names {} servers", said == nullptr ? "" : at(said->line),
            said == nullptr ? "" : said->text.substr(0, 40), servers.size());
    }
  }

  const std::string& file_;
  LocatedJson root_;
  std::vector<Device> devices_;
};

void check_device(const Reader& reader, const Device& device, const Host& host, const RankTableRules& rules,
                  const Host& first) {
  if (device.address.empty()) return;
  const auto position = host.addresses.size();
  if (position >= first.addresses.size() || first.addresses[position].empty()) return;
  const host::Address address = *host::parse_address(device.address);
  const host::Address counterpart = *host::parse_address(first.addresses[position]);
  const int bits = rules.prefix > 0 ? rules.prefix : (counterpart.bits == 32 ? 24 : 64);
  const host::Network network = host::network_of(counterpart, bits);
  check(network.holds(address), kSite,
        "{}: device_ip {} of rank {} is outside {}, the network of {} on {}; expected one network for the same device "
        "of all hosts (--prefix BITS if the network is wider)",
        reader.at(device.line), device.address, device.rank, network.str(), first.addresses[position], first.name);
}

}  // namespace

HostList parse_rank_table(std::string_view text, const std::string& file, const RankTableRules& rules) {
  const Reader reader(text, file);
  HostList list;
  std::map<std::string, const Device*> addresses;
  std::map<std::pair<std::string, std::int64_t>, const Device*> ids;
  std::int64_t next = 0;
  for (const Device& device : reader.devices()) {
    check(device.rank == next, kSite, "{}: rank_id {}, expected {}: ranks count from 0 in the order of the table",
          reader.at(device.line), device.rank, next);
    ++next;
    if (list.hosts.empty() || list.hosts.back().name != device.server) {
      check(list.find(device.server) == nullptr, kSite,
            "{}: rank {} is on {}, whose other ranks come before those of {}; expected a host's ranks together",
            reader.at(device.line), device.rank, device.server, list.hosts.empty() ? "" : list.hosts.back().name);
      list.hosts.push_back({.name = device.server, .origin = reader.at(device.line)});
    }
    Host& host = list.hosts.back();
    const auto [id, new_id] = ids.emplace(std::pair(device.server, device.id), &device);
    check(new_id, kSite, "{}: device_id {} of {} is rank {}'s already (line {}), expected each device once",
          reader.at(device.line), device.id, device.server, id->second->rank, id->second->line);
    if (!device.address.empty()) {
      const auto [known, is_new] = addresses.emplace(host::parse_address(device.address)->str(), &device);
      check(is_new || known->second->server == device.server, kSite,
            "{}: device_ip {} is rank {}'s on {} already (line {}), expected an address on one host",
            reader.at(device.line), device.address, known->second->rank, known->second->server, known->second->line);
    }
    check_device(reader, device, host, rules, list.hosts.front());
    host.addresses.push_back(device.address);
    host.slots += 1;
  }
  return list;
}

std::string to_rank_table(const HostList& list) {
  nlohmann::ordered_json table;
  table["version"] = "1.0";
  table["server_count"] = std::to_string(list.hosts.size());
  table["server_list"] = nlohmann::ordered_json::array();
  std::int64_t rank = 0;
  for (const Host& host : list.hosts) {
    check(host.slots > 0, kSite, "{}: {} has no slots=, expected the number of its ranks", host.origin, host.name);
    nlohmann::ordered_json server;
    server["server_id"] = host.name;
    for (std::int64_t i = 0; i < host.slots; ++i) {
      nlohmann::ordered_json device;
      device["device_id"] = std::to_string(i);
      if (static_cast<std::size_t>(i) < host.addresses.size() && !host.addresses[static_cast<std::size_t>(i)].empty())
        device["device_ip"] = host.addresses[static_cast<std::size_t>(i)];
      device["rank_id"] = std::to_string(rank++);
      server["device"].push_back(std::move(device));
    }
    table["server_list"].push_back(std::move(server));
  }
  table["status"] = "completed";
  return table.dump(2) + "\n";
}

}  // namespace lockstep::launch
