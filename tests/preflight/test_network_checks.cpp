#include "lockstep/core/error.h"
#include "lockstep/preflight/network/addresses.h"
#include "lockstep/preflight/network/firewall.h"
#include "lockstep/preflight/network/link_test.h"
#include "lockstep/preflight/network/sockets.h"
#include "tests/memory_limit.h"
#include "tests/preflight/support.h"

namespace lockstep::test {
namespace {

using nlohmann::json;
using namespace preflight;

json address(const char* interface, const char* text, int prefix = 24, bool loopback = false) {
  return {{"interface", interface}, {"address", text}, {"prefix", prefix}, {"loopback", loopback}, {"bridge", false}};
}

const json kLo = address("lo", "127.0.0.1", 8, true), kDocker = address("docker0", "172.17.0.1", 16);

// Two hosts that reach each other by eth0.
std::vector<json> hosts(const char* setting, bool docker = false, const char* exclude = "") {
  std::vector<json> values;
  for (const char* own : {"10.1.0.1", "10.1.0.2"}) {
    json addresses{kLo, address("eth0", own)};
    if (docker) addresses.push_back(kDocker);
    values.push_back(
        {{"setting", setting},
         {"exclude", exclude},
         {"addresses", addresses},
         {"routes", {{{"host", "peer"}, {"address", "10.1.0.9"}, {"local", own}, {"interface", "eth0"}}}}});
  }
  return values;
}

TEST(Interfaces, TheOneOfTheRouteIsTold) {
  expect_green(kInterfaces, hosts(""));
  expect_says(concluded(kInterfaces, hosts("")), {"node1 eth0 10.1.0.1/24, node2 eth0 10.1.0.2/24"});
  for (const char* good : {"eth0", "10.1.0.0/16", "10.1.0.1", "10.1.0.1,10.1.0.2"})
    expect_green(kInterfaces, hosts(good));
}

TEST(Interfaces, LoopbackAndOnesThatAreNotThereAreRed) {
  expect_says(concluded(kInterfaces, hosts("lo")),
              {"red node1", "set to lo, which reaches no other host", "eth0", "btl_tcp_if_include 10.1.0.0/24"});
  expect_says(concluded(kInterfaces, hosts("ib0")), {"red node2", "ib0, which is no interface", "the others is eth0"});
  // One entry that is right does not mend another: programs refuse the whole setting.
  expect_says(concluded(kInterfaces, hosts("eth0,ib0")), {"red node1", "ib0, which is no interface"});
  expect_says(concluded(kInterfaces, hosts("eth0,lo")), {"red node2", "lo, which reaches no other host"});
}

TEST(Interfaces, AnAddressOnSeveralHostsIsRedUnlessItIsNotUsed) {
  expect_says(concluded(kInterfaces, hosts("", true)),
              {"red node1, node2: docker0 has the address 172.17.0.1", "LOCKSTEP_INTERFACE=10.1.0.0/24"});
  expect_green(kInterfaces, hosts("eth0", true));
  for (const char* exclude : {"lo,docker0", "127.0.0.1/8,172.17.0.0/16"})
    expect_green(kInterfaces, hosts("", true, exclude));
  expect_says(concluded(kInterfaces, hosts("", true, "eth1")), {"red node1, node2: docker0"});
  expect_says(concluded(kInterfaces, hosts("eth0,docker0", true, "docker0")), {"red node1, node2: docker0"});
}

TEST(Interfaces, AHostWithoutARouteIsRed) {
  std::vector<json> values = hosts("");
  values[1]["routes"][0]["local"] = "";
  expect_says(concluded(kInterfaces, values), {"red node2: no route"});
}

json names(const char* own, json resolved) {
  return {{"hosts", {"node1", "node2"}}, {"own", {"127.0.0.1", own}}, {"resolved", resolved}};
}

TEST(Names, EveryHostMustKnowTheOthers) {
  const json good{{"node1", {"10.1.0.1"}}, {"node2", {"10.1.0.2"}}};
  expect_green(kNames, {names("10.1.0.1", good), names("10.1.0.2", good)});
  // Debian gives a host's own name an address of the loopback network, which is no fault.
  expect_green(kNames,
               {names("10.1.0.1", {{"node1", {"127.0.1.1"}}, {"node2", {"10.1.0.2"}}}), names("10.1.0.2", good)});
  expect_says(concluded(kNames, {names("10.1.0.1", good),
                                 names("10.1.0.2", {{"node1", json::array()}, {"node2", {"10.1.0.2"}}})}),
              {"red node2: the name node1 does not resolve", "echo '10.1.0.1 node1' >> /etc/hosts"});
  expect_says(concluded(kNames, {names("10.1.0.1", {{"node1", {"10.1.0.1"}}, {"node2", {"10.9.9.9"}}}),
                                 names("10.1.0.2", good)}),
              {"red node1: the name node2 means 10.9.9.9, which is no address of that host"});
}

json ports(const char* name, json occupied, json failed, const char* firewall = "") {
  return {
      {"name", name},         {"occupied", occupied},     {"failed", failed}, {"tried", 16}, {"ports", {60000, 60015}},
      {"firewall", firewall}, {"mend", "nft insert rule"}};
}

TEST(Ports, BlockedOnesAreToldByHostWithTheLineThatOpensThem) {
  const json none = json::array();
  expect_green(kPorts, {ports("node1", none, none), ports("node2", none, none)});
  const json failed{
      {{"host", "node2"}, {"address", "10.1.0.2"}, {"port", 60000}, {"reason", "no answer within 3.0 s"}},
      {{"host", "node2"}, {"address", "10.1.0.2"}, {"port", 60001}, {"reason", "no answer within 3.0 s"}}};
  const std::string text = concluded(kPorts, {ports("node1", none, failed), ports("node2", none, none, "nftables")});
  expect_says(text, {"red node1 to node2: no connection to 2 ports of 60000 to 60001 (no answer",
                     "node2 has nftables at work", "on node2: nft insert rule"});
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

TEST(Ports, OccupiedOnesAreToldWithTheirOwner) {
  const json occupied{{{"port", 60003}, {"reason", "Address already in use"}, {"owner", "nginx (process 8)"}}};
  expect_says(
      concluded(kPorts, {ports("node1", json::array(), json::array()), ports("node2", occupied, json::array())}),
      {"red node2: port 60003 of --ports is taken by nginx (process 8)"});
}

json link(const char* to, double us, double mbs, int lost = 0) {
  return {{"host", to}, {"address", "10.1.0.1"}, {"us", us}, {"mbs", mbs}, {"pings", 200}, {"lost", lost}};
}
json links(const char* name, const std::vector<json>& list) { return {{"name", name}, {"links", list}}; }

TEST(Links, AlikeOnesAreGreen) {
  expect_green(kLinks, {links("node1", {link("node2", 40, 1000)}), links("node2", {link("node1", 45, 1100)})});
}

TEST(Links, AHostWithASlowCardIsNamedAndNotItsPartners) {
  const std::string text = concluded(kLinks, {links("node1", {link("node2", 40, 1000), link("node3", 40, 100)}),
                                              links("node2", {link("node1", 40, 1000), link("node3", 40, 100)}),
                                              links("node3", {link("node1", 40, 110), link("node2", 40, 110)})});
  expect_says(text, {"yellow node3: 100 MB/s"});
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

TEST(Links, TwoHostsAreComparedWithWhatACableHas) {
  expect_says(concluded(kLinks, {links("node1", {link("node2", 40, 1.2)}), links("node2", {link("node1", 45, 1.2)})}),
              {"yellow node1 to node2, node2 to node1: 1.2 MB/s, expected 50 or more", "gradients take 83 s"});
}

TEST(Links, LossesExplainALowRate) {
  const std::string text =
      concluded(kLinks, {links("node1", {link("node2", 40, 2, 9)}), links("node2", {link("node1", 45, 3, 1)})});
  expect_says(text, {"yellow node1 to node2: packets are lost: 9 of 200"});
  EXPECT_EQ(text.find("MB/s"), std::string::npos) << text;
}

TEST(Links, TheLatestOneIsTold) {
  expect_says(concluded(kLinks, {links("node1", {link("node2", 40, 1000), link("node3", 900, 1000)}),
                                 links("node2", {link("node1", 40, 1000), link("node3", 4000, 1000)}),
                                 links("node3", {link("node1", 900, 1000), link("node2", 900, 1000)})}),
              {"yellow node3: 4000 us there and back at best, 40 on other links"});
}

TEST(Links, HostsThatDoNotConnectAreLeftToTheCheckOfPorts) {
  expect_green(kLinks, {links("node1", {json{{"host", "node2"}, {"address", "10.1.0.2"}}}), links("node2", {})});
}

TEST(MemoryBandwidth, TheSlowNodeIsNamed) {
  expect_green(kMemoryBandwidth, {40.0, 35.0});
  expect_says(concluded(kMemoryBandwidth, {40.0, 15.0}), {"yellow node2: memory moves 15 GB/s, on another host 40"});
}

TEST(MemoryBandwidth, AHostWithLittleMemoryGoesOnWithoutIt) {
  LOCKSTEP_SKIP_WITHOUT_LIMITS();
  const Subject subject{.host = "node1", .threads = 4};
  EXPECT_TRUE(fits_in(std::size_t{8} << 20, [&] {
    AloneExchange exchange;
    const json facts = kMemoryBandwidth.gather(subject, exchange);
    check(facts.is_object() && facts.contains("problem"), "test", "{}, expected a problem", facts.dump());
  }));
}

TEST(Firewall, UfwFirewalldAndNftablesHaveTheirLines) {
  const launch::PortRange ports{60000, 60015};
  EXPECT_EQ(opening_line(firewall_of("", true, false), "10.1.0.0/24", ports),
            "ufw allow proto tcp from 10.1.0.0/24 to any port 60000:60015");
  expect_says(opening_line(firewall_of("", false, true), "10.1.0.0/24", ports),
              {"firewall-cmd --permanent", "60000-60015"});
  const std::string rules = R"({"nftables": [{"metainfo": {"version": "1"}},
    {"chain": {"family": "inet", "table": "filter", "name": "input", "hook": "input", "policy": "accept"}},
    {"rule": {"family": "inet", "table": "filter", "chain": "input", "expr": [{"match": {}}, {"drop": null}]}}]})";
  EXPECT_EQ(opening_line(firewall_of(rules, false, false), "10.1.0.0/24", ports),
            "nft insert rule inet filter input ip saddr 10.1.0.0/24 tcp dport 60000-60015 accept");
}

// Chains of the table "inet t": the base chain "in" at the input hook, and rules, each as its chain and expressions.
std::string chain_of(const std::vector<std::pair<std::string, std::string>>& rules, const std::string& more = "") {
  std::string text = R"({"nftables": [{"chain": {"family": "inet", "table": "t", "name": "in", "hook": "input"}},
    {"chain": {"family": "inet", "table": "t", "name": "fwd", "hook": "forward", "policy": "drop"}})";
  for (const auto& [chain, expressions] : rules)
    text += formatted(R"(, {{"rule": {{"family": "inet", "table": "t", "chain": "{}", "expr": [{}]}}}})", chain,
                      expressions);
  return firewall_of(text + more + "]}", false, false).chain;
}

TEST(Firewall, OnlyChainsThatAPacketForThisHostComesToCount) {
  const std::string drop = R"({"drop": null})", to_a = R"({"jump": {"target": "a"}})";
  EXPECT_EQ(chain_of({}), "") << "what is forwarded to containers is not for this host";
  EXPECT_EQ(chain_of({{"fwd", drop}, {"a", drop}}), "");
  EXPECT_EQ(chain_of({{"fwd", to_a}, {"a", drop}}), "");
  EXPECT_EQ(chain_of({{"in", drop}}), "inet t in");
  EXPECT_EQ(chain_of({{"in", to_a}, {"a", drop}}), "inet t in");
  EXPECT_EQ(chain_of({{"in", to_a}, {"a", R"({"goto": {"target": "b"}})"}, {"b", R"({"reject": null})"}, {"b", to_a}}),
            "inet t in");
  const std::string choice = R"({"vmap": {"key": {}, "data": {"set": [["eth0", {"jump": {"target": "a"}}]]}}})";
  EXPECT_EQ(chain_of({{"in", choice}, {"a", drop}}), "inet t in");
  const std::string map = R"(, {"map": {"family": "inet", "table": "t", "name": "m", "map": "verdict",
    "elem": [["eth0", {"goto": {"target": "a"}}]]}})";
  const std::string by_map = R"({"vmap": {"key": {}, "data": "@m"}})";
  EXPECT_EQ(chain_of({{"in", by_map}, {"a", drop}}, map), "inet t in");
  EXPECT_EQ(chain_of({{"in", by_map}, {"a", drop}}), "");
}

TEST(Firewall, ARuleSetThatLetsAllInIsNone) {
  EXPECT_EQ(firewall_of("", false, false).tool, "");
  EXPECT_EQ(firewall_of("no JSON", false, false).tool, "");
  const std::string open =
      R"({"nftables": [{"chain": {"family": "ip", "table": "t", "name": "c", "hook": "input", "policy": "accept"}}]})";
  EXPECT_EQ(firewall_of(open, false, false).tool, "");
  expect_says(opening_line({}, "10.1.0.0/24", {}), {"1024-65535", "security group"});
}

TEST(Addresses, NetworksAreMatchedByTheirBits) {
  const InterfaceAddress own{.interface = "eth0", .address = "10.1.2.3", .prefix = 16};
  for (const char* item : {"eth0", "10.1.2.3", "10.1.0.0/16", "10.0.0.0/8", "0.0.0.0/0"})
    EXPECT_TRUE(means(item, own)) << item;
  EXPECT_TRUE(means("10.1.7.7", own)) << "an address of another host stands for the network";
  for (const char* item : {"eth1", "10.2.2.3", "10.2.0.0/16", "10.1.0.0/x", "fd00::1", "", "/"})
    EXPECT_FALSE(means(item, own)) << item;
  EXPECT_EQ(network_of("10.1.2.3", 16), "10.1.0.0/16");
  EXPECT_EQ(items("a,,b"), (std::vector<std::string>{"a", "b"}));
}

TEST(Addresses, LoopbackIsThere) {
  bool found = false;
  for (const InterfaceAddress& own : interface_addresses())
    found = found || (own.loopback && own.address == "127.0.0.1");
  EXPECT_TRUE(found);
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(resolve("127.0.0.1"), std::vector<std::string>{"127.0.0.1"});
  const std::vector<std::vector<std::string>> all = resolve_all({"127.0.0.1", "127.0.0.2", "127.0.0.1"});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1], std::vector<std::string>{"127.0.0.2"});
  EXPECT_EQ(all[2], all[0]);
  EXPECT_TRUE(resolve_all({}).empty());
  const auto route = route_to("127.0.0.1");
  ASSERT_TRUE(route);
  EXPECT_EQ(route->address, "127.0.0.1");
}

TEST(Sockets, APortIsTakenOnceAndItsOwnerIsThisProcess) {
  const auto first = listen_at(0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(listen_at(port_of(*first)));
  expect_says(listener_of(port_of(*first)), {std::to_string(getpid())});
  const std::vector<std::string> results = try_to_connect({{"127.0.0.1", port_of(*first)}}, std::chrono::seconds(20));
  EXPECT_EQ(results, std::vector<std::string>{""});
}

TEST(Sockets, AClosedPortRefuses) {
  int port = 0;
  {
    const auto closed = listen_at(0);
    ASSERT_TRUE(closed);
    port = port_of(*closed);
  }
  expect_says(try_to_connect({{"127.0.0.1", port}}, std::chrono::seconds(20)).front(), {"refused"});
  EXPECT_FALSE(measure_link({"127.0.0.1", port}));
}

TEST(Sockets, AreClosedSoThatAServerIsFreeAfterwards) {
  const LinkServer server(0, 0);
  const std::vector<Target> targets(100, Target{"127.0.0.1", server.port()});
  for (const std::string& result : try_to_connect(targets, std::chrono::seconds(20))) EXPECT_EQ(result, "");
  EXPECT_TRUE(measure_link({"127.0.0.1", server.port()}));
}

TEST(LinkTest, MeasuresItsOwnServer) {
  const LinkServer server(0, 0);
  ASSERT_GT(server.port(), 0);
  for (int i = 0; i < 2; ++i) {
    const auto figures = measure_link({"127.0.0.1", server.port()});
    ASSERT_TRUE(figures);
    EXPECT_GT(figures->microseconds, 0);
    EXPECT_GT(figures->megabytes_per_second, 0);
    EXPECT_GT(figures->pings, 0);
  }
}

}  // namespace
}  // namespace lockstep::test
