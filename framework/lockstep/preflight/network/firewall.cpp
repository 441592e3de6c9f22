#include "lockstep/preflight/network/firewall.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

// The output of a command; "" where it cannot be run or fails.
std::string printed(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t bytes = fread(block.data(), 1, block.size(), pipe.get())) text.append(block.data(), bytes);
  return text;
}

// "inet filter input", where `key` holds the last word.
std::string name_of(const json& object, const char* key) {
  return formatted("{} {} {}", object.value("family", ""), object.value("table", ""), object.value(key, ""));
}

bool refuses(const json& rule) {
  for (const json& part : rule.value("expr", json::array())) {
    if (part.contains("drop") || part.contains("reject")) return true;
  }
  return false;
}

using Names = std::set<std::string>;

// Adds the names after '@' (of maps) and the targets of jumps that stand anywhere in `part`.
void collect(const json& part, const std::string& table, Names& maps, Names& targets) {
  if (part.is_string() && part.get_ref<const std::string&>().starts_with('@'))
    maps.insert(table + part.get_ref<const std::string&>().substr(1));
  if (part.is_object()) {
    for (const char* way : {"jump", "goto"}) {
      if (part.contains(way) && part[way].is_object()) targets.insert(table + part[way].value("target", ""));
    }
  }
  if (!part.is_structured()) return;
  for (const json& inner : part) collect(inner, table, maps, targets);
}

struct Chains {
  std::vector<std::string> inputs{};               // base chains at the input hook
  Names dropping{}, refusing{};                    // by policy; by a rule
  std::map<std::string, Names> targets{}, maps{};  // by chain: the chains and maps that its rules name
  std::map<std::string, Names> targets_of_maps{};
};

Chains chains_of(const json& ruleset) {
  Chains chains;
  for (const json& entry : ruleset.value("nftables", json::array())) {
    if (entry.contains("chain") && entry["chain"].value("hook", "") == "input") {
      const std::string name = name_of(entry["chain"], "name");
      chains.inputs.push_back(name);
      if (entry["chain"].value("policy", "") == "drop") chains.dropping.insert(name);
    }
    if (entry.contains("rule")) {
      const json& rule = entry["rule"];
      const std::string chain = name_of(rule, "chain");
      if (refuses(rule)) chains.refusing.insert(chain);
      collect(rule.value("expr", json::array()), name_of(rule, ""), chains.maps[chain], chains.targets[chain]);
    }
    if (entry.contains("map")) {
      Names maps;
      collect(entry["map"].value("elem", json::array()), name_of(entry["map"], ""), maps,
              chains.targets_of_maps[name_of(entry["map"], "name")]);
    }
  }
  return chains;
}

// Whether a packet that comes to a base chain may come to a rule that refuses: in that chain, or in one to which its
// rules lead. A chain at another hook, as those for containers, sees no packet for this host.
bool reaches_a_refusal(Chains& chains, const std::string& base) {
  Names seen{base};
  std::vector<std::string> open{base};
  while (!open.empty()) {
    const std::string chain = open.back();
    open.pop_back();
    if (chains.refusing.contains(chain)) return true;
    Names next = chains.targets[chain];
    for (const std::string& map : chains.maps[chain]) next.merge(Names(chains.targets_of_maps[map]));
    for (const std::string& target : next) {
      if (seen.insert(target).second) open.push_back(target);
    }
  }
  return false;
}

// The base chain at the input hook that refuses something, one that refuses by its policy first; "" if none does.
std::string refusing_chain(const json& ruleset) {
  Chains chains = chains_of(ruleset);
  for (const std::string& base : chains.inputs) {
    if (chains.dropping.contains(base)) return base;
  }
  for (const std::string& base : chains.inputs) {
    if (reaches_a_refusal(chains, base)) return base;
  }
  return "";
}

bool ufw_is_enabled() {
  std::ifstream file("/etc/ufw/ufw.conf");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("ENABLED=yes")) return true;
  }
  return false;
}

}  // namespace

Firewall firewall_of(const std::string& ruleset, bool ufw, bool firewalld) {
  if (ufw) return {.tool = "ufw"};
  if (firewalld) return {.tool = "firewalld"};
  const json rules = json::parse(ruleset, nullptr, false);
  if (!rules.is_object()) return {};
  const std::string chain = refusing_chain(rules);
  return chain.empty() ? Firewall{} : Firewall{.tool = "nftables", .chain = chain};
}

Firewall firewall_here() {
  // A firewall that does not answer must not hold up the doctor.
  const std::string path = "PATH=$PATH:/usr/sbin:/sbin timeout 5 ";
  return firewall_of(printed((path + "nft -j list ruleset 2>/dev/null").c_str()), ufw_is_enabled(),
                     printed((path + "firewall-cmd --state 2>/dev/null").c_str()).starts_with("running"));
}

std::string opening_line(const Firewall& firewall, const std::string& network, const launch::PortRange& ports) {
  using launch::FirewallTool;
  const launch::PortRange range = ports.any() ? launch::PortRange{1024, 65535} : ports;
  if (firewall.tool == "ufw") return launch::opening_command(FirewallTool::Ufw, range, network);
  if (firewall.tool == "firewalld") return launch::opening_command(FirewallTool::Firewalld, range, network);
  if (firewall.tool == "nftables")
    return launch::opening_command(FirewallTool::Nftables, range, network, firewall.chain);
  return formatted("open TCP ports {} between the hosts ({}) in the firewall of the network (security group)",
                   range.str(), network);
}

}  // namespace lockstep::preflight
