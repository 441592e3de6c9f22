#include "lockstep/preflight/network/firewall.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

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

std::string name_of(const json& object, const char* chain) {
  return formatted("{} {} {}", object.value("family", ""), object.value("table", ""), object.value(chain, ""));
}

bool refuses(const json& rule) {
  for (const json& part : rule.value("expr", json::array())) {
    if (part.contains("drop") || part.contains("reject")) return true;
  }
  return false;
}

// The base chain at the input hook that refuses something itself or in a chain that it may come to; "" if none does.
std::string refusing_chain(const json& ruleset) {
  std::string input;
  std::set<std::string> refusing;
  for (const json& entry : ruleset.value("nftables", json::array())) {
    if (entry.contains("chain") && entry["chain"].value("hook", "") == "input") {
      const std::string name = name_of(entry["chain"], "name");
      if (input.empty() || entry["chain"].value("policy", "") == "drop") input = name;
      if (entry["chain"].value("policy", "") == "drop") refusing.insert(name);
    }
    if (entry.contains("rule") && refuses(entry["rule"])) refusing.insert(name_of(entry["rule"], "chain"));
  }
  return refusing.empty() ? "" : input;
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
  const int first = ports.any() ? 1024 : ports.first, last = ports.any() ? 65535 : ports.last;
  if (firewall.tool == "ufw") return formatted("ufw allow proto tcp from {} to any port {}:{}", network, first, last);
  if (firewall.tool == "firewalld")
    return formatted(
        "firewall-cmd --permanent --add-rich-rule='rule family=ipv4 source address={} port port={}-{} protocol=tcp "
        "accept' && firewall-cmd --reload",
        network, first, last);
  if (firewall.tool == "nftables")
    return formatted("nft insert rule {} ip saddr {} tcp dport {}-{} accept", firewall.chain, network, first, last);
  return formatted("open TCP ports {}-{} between the hosts ({}) in the firewall of the network (security group)", first,
                   last, network);
}

}  // namespace lockstep::preflight
