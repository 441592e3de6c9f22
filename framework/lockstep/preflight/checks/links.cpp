// Latency, bandwidth and losses between every two hosts, and the link that is not as the others are.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/network/link_test.h"
#include "lockstep/preflight/network/peers.h"
#include "lockstep/preflight/network/sockets.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kReachLimit{8000};  // three lost packets in a row fit in

constexpr double kLeast = 50;            // MB/s: half of a cable of 1 Gbit/s
constexpr double kSlowLink = 0.5;        // of the usual bandwidth
constexpr double kLatencyOutlier = 5;    // times the usual one
constexpr double kLatencyMatters = 300;  // us
constexpr std::int64_t kLost = 3;        // retransmissions of one-byte messages: one may be an accident

// In round r of n - 1 (n even, one host sits out where it is odd) every host has one partner: a round-robin tournament.
int partner(int me, int round, int hosts) {
  const int n = hosts + hosts % 2;
  const int last = n - 1;
  if (me == last) return round;
  if (me == round) return last;
  return (2 * round - me + 2 * last) % last;
}

// By peer: whether its server can be connected to from here. All at once, so that hosts behind a firewall that drops
// packets take the limit of time once, and not one after the other in the rounds.
std::vector<bool> reachable(const std::vector<Peer>& peers, const std::vector<std::string>& ports, std::size_t me) {
  std::vector<Target> targets;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const int port = std::stoi(ports[static_cast<std::size_t>(peers[i].rank)]);
    if (i == me || port == 0 || peers[i].address.empty()) continue;
    targets.push_back({peers[i].address, port});
    of.push_back(i);
  }
  std::vector<bool> found(peers.size());
  const std::vector<std::string> results = try_to_connect(targets, kReachLimit);
  for (std::size_t k = 0; k < results.size(); ++k) found[of[k]] = results[k].empty();
  return found;
}

json link_to(const Peer& peer, bool is_reachable, const std::string& port) {
  json link{{"host", peer.host}, {"address", peer.address}};
  if (const auto f = is_reachable ? measure_link({peer.address, std::stoi(port)}) : std::nullopt)
    link.update({{"us", f->microseconds}, {"mbs", f->megabytes_per_second}, {"pings", f->pings}, {"lost", f->lost}});
  return link;
}

json gather_links(const Subject& subject, Exchange& exchange) {
  const std::vector<Peer> peers = find_peers(subject, exchange);
  const bool takes_part = subject.speaks() && peers.size() > 1;
  std::optional<LinkServer> server;
  if (takes_part) server.emplace(subject.network.ports.first, subject.network.ports.last);
  const std::vector<std::string> ports = exchange.allgather(std::to_string(takes_part ? server->port() : 0));
  const int hosts = static_cast<int>(peers.size());
  const auto at = std::ranges::find(peers, subject.node, &Peer::node);
  const int me = takes_part ? static_cast<int>(at - peers.begin()) : -1;
  std::vector<bool> open;
  if (takes_part) open = reachable(peers, ports, static_cast<std::size_t>(me));
  exchange.allgather("");  // from here on each host connects in its turn alone
  json links = json::array();
  for (int round = 0; round < hosts + hosts % 2 - 1; ++round) {
    for (const bool lower_measures : {true, false}) {
      const int other = takes_part ? partner(me, round, hosts) : -1;
      if (takes_part && other < hosts && other != me && (me < other) == lower_measures) {
        const auto index = static_cast<std::size_t>(other);
        links.push_back(link_to(peers[index], open[index], ports[static_cast<std::size_t>(peers[index].rank)]));
      }
      exchange.allgather("");
    }
  }
  if (!subject.speaks()) return nullptr;
  return {{"name", at->host}, {"links", links}};
}

struct Link {
  std::string from, to;
  double us, mbs;
  std::int64_t pings, lost;
  std::string name() const { return from + " to " + to; }
};

std::vector<Link> measured(const Facts& facts) {
  std::vector<Link> links;
  for (const RankFacts& node : facts) {
    for (const json& link : node.value.at("links")) {
      if (link.contains("us"))  // without a connection the check of ports tells why
        links.push_back(
            {node.value.at("name"), link.at("host"), link.at("us"), link.at("mbs"), link.at("pings"), link.at("lost")});
    }
  }
  return links;
}

// The value that this share of the values does not reach.
double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size()))];
}

std::vector<double> column(const std::vector<Link>& links, double Link::*value) {
  std::vector<double> values;
  for (const Link& link : links) values.push_back(link.*value);
  return values;
}

// The host that has a part in every one of these links and in no other link; else the links themselves.
std::string where(const std::vector<const Link*>& bad, const std::vector<Link>& all) {
  std::map<std::string, std::size_t> of_bad, of_all;
  for (const Link* link : bad) ++of_bad[link->from], ++of_bad[link->to];
  for (const Link& link : all) ++of_all[link.from], ++of_all[link.to];
  if (bad.size() > 1 && of_all.size() > 2) {
    for (const auto& [host, count] : of_bad) {
      if (count == bad.size() && count == of_all[host]) return host;
    }
  }
  std::vector<std::string> names;
  for (const Link* link : bad) names.push_back(link->name());
  return joined(names, ", ");
}

template <class IsBad>
std::vector<const Link*> those(const std::vector<Link>& links, IsBad is_bad) {
  std::vector<const Link*> bad;
  for (const Link& link : links) {
    if (is_bad(link)) bad.push_back(&link);
  }
  return bad;
}

std::vector<Finding> conclude_links(const Facts& facts) {
  const std::vector<Link> links = measured(facts);
  if (facts.size() == 1) return {{.what = "1 host"}};
  if (links.empty()) return {{.what = "not measured: the hosts do not connect"}};
  std::vector<Finding> findings;
  // One slow host of three has a part in two thirds of the links, so their median would be its rate.
  const double usual = quantile(column(links, &Link::mbs), 0.75), latency = quantile(column(links, &Link::us), 0.25);
  const auto lossy = those(links, [&](const Link& link) { return link.lost >= kLost; });
  if (!lossy.empty()) {
    const Link& worst = **std::ranges::max_element(lossy, {}, [](const Link* link) { return link->lost; });
    findings.push_back(
        {.level = Level::Yellow,
         .what = formatted("packets are lost: {} of {} short messages had to be sent again", worst.lost, worst.pings),
         .where = where(lossy, links),
         .mend = "look at the cable and `ip -s link`, or choose another network: LOCKSTEP_INTERFACE"});
  }
  const auto slow = those(
      links, [&](const Link& link) { return (link.mbs < kSlowLink * usual && links.size() > 2) || link.mbs < kLeast; });
  if (!slow.empty() && lossy.empty()) {  // losses explain a low rate
    const Link& worst = **std::ranges::min_element(slow, {}, [](const Link* link) { return link->mbs; });
    findings.push_back(
        {.level = Level::Yellow,
         .what = formatted("{:.3g} MB/s, expected {:.3g} or more{}: 100 MB of gradients take {:.2g} s", worst.mbs,
                           std::max(kLeast, kSlowLink * usual),
                           usual > 2 * worst.mbs ? formatted(" (others: {:.3g})", usual) : "", 100 / worst.mbs),
         .where = where(slow, links),
         .mend = "ethtool DEV shows the card's rate; another network: LOCKSTEP_INTERFACE"});
  }
  const auto late =
      those(links, [&](const Link& link) { return link.us > kLatencyMatters && link.us > kLatencyOutlier * latency; });
  if (!late.empty() && lossy.empty()) {
    const Link& worst = **std::ranges::max_element(late, {}, [](const Link* link) { return link->us; });
    findings.push_back({.level = Level::Yellow,
                        .what = formatted("{:.0f} us there and back at best, {:.0f} on other links", worst.us, latency),
                        .where = where(late, links),
                        .mend = "traceroute shows the hosts between; ask for nodes of one switch"});
  }
  std::size_t tried = 0;
  for (const RankFacts& node : facts) tried += node.value.at("links").size();
  const std::string silent =
      tried == links.size() ? "" : formatted(", {} more gave no answer in time", tried - links.size());
  return or_green(std::move(findings),
                  formatted("{} links: {:.0f} us there and back, {:.3g} MB/s (the better quarter){}", links.size(),
                            latency, usual, silent));
}

}  // namespace

const Check kLinks{"links", Cost::Thorough, gather_links, conclude_links};

}  // namespace lockstep::preflight
