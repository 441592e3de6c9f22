// Each host's name means that host, on every other host.
#include <algorithm>
#include <map>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/network/peers.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

json gather_names(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  json facts{{"hosts", subject.network.hosts}, {"own", json::array()}, {"resolved", json::object()}};
  for (const InterfaceAddress& own : interface_addresses()) facts["own"].push_back(own.address);
  const std::vector<std::string>& names = subject.network.hosts;
  const std::vector<std::vector<std::string>> found = resolve_all(names);
  for (std::size_t i = 0; i < names.size(); ++i) facts["resolved"][names[i]] = found[i];
  return facts;
}

std::string entry(const std::string& address, const std::string& name) {
  return formatted("echo '{} {}' >> /etc/hosts", address, name);
}

std::vector<Finding> conclude_names(const Facts& facts) {
  std::map<int, std::vector<std::string>> own;  // addresses by node
  for (const RankFacts& node : facts) own[node.node] = node.value.at("own").get<std::vector<std::string>>();
  std::vector<Finding> findings;
  for (const RankFacts& node : facts) {
    const auto names = node.value.at("hosts").get<std::vector<std::string>>();
    for (const auto& entry_of_node : own) {
      const int other = entry_of_node.first;
      const std::vector<std::string>& addresses = entry_of_node.second;  // no structured binding: lambdas capture it
      if (other == node.node || static_cast<std::size_t>(other) >= names.size()) continue;
      const std::string& name = names[static_cast<std::size_t>(other)];
      const auto found = node.value.at("resolved").at(name).get<std::vector<std::string>>();
      const auto outward = std::ranges::find_if(addresses, [](const auto& a) { return !a.starts_with("127."); });
      const std::string right = outward == addresses.end() ? "ADDRESS" : *outward;
      if (found.empty()) {
        findings.push_back({.level = Level::Red,
                            .what = formatted("the name {} does not resolve", name),
                            .where = node.host,
                            .mend = entry(right, name)});
      } else if (!std::ranges::any_of(found, [&](const std::string& address) {
                   return !address.starts_with("127.") && std::ranges::find(addresses, address) != addresses.end();
                 })) {
        findings.push_back({.level = Level::Red,
                            .what = formatted("the name {} means {}, which is no address of that host ({})", name,
                                              joined(found, ", "), joined(addresses, ", ")),
                            .where = node.host,
                            .mend = formatted("correct its line in /etc/hosts: {} {}", right, name)});
      }
    }
  }
  return or_green(std::move(findings),
                  facts.size() == 1 ? "1 host" : "every host's name means that host on all others");
}

}  // namespace

const Check kNames{"names", Cost::Thorough, gather_names, conclude_names};

}  // namespace lockstep::preflight
