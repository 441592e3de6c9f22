// Clocks of hosts, read when all ranks have come through one barrier.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr double kAlike = 2;  // seconds; a barrier of a busy machine takes its time

json gather_clocks(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The host whose clock most others are near to: with two, the first.
double reference(const Facts& facts) {
  const auto neighbours = [&](const RankFacts& one) {
    return std::ranges::count_if(facts, [&](const RankFacts& other) {
      return std::abs(one.value.get<double>() - other.value.get<double>()) <= kAlike;
    });
  };
  return std::ranges::max_element(facts, {}, neighbours)->value.get<double>();
}

std::vector<Finding> conclude_clocks(const Facts& facts) {
  std::vector<Finding> findings;
  const double right = reference(facts);
  for (const RankFacts& node : facts) {
    const double off = node.value.get<double>() - right;
    if (std::abs(off) <= kAlike) continue;
    findings.push_back(
        {.level = Level::Yellow,
         .what = formatted("the clock is {:.0f} s {} that of {}", std::abs(off), off > 0 ? "ahead of" : "behind",
                           facts.size() == 2 ? facts[0].host : "most hosts"),
         .where = node.host,
         .mend = "timedatectl set-ntp true, or chronyc makestep"});
  }
  return or_green(std::move(findings), facts.size() == 1 ? "1 host" : formatted("alike within {:.0f} s", kAlike));
}

}  // namespace

const Check kClocks{"clocks", Cost::Cheap, gather_clocks, conclude_clocks};

}  // namespace lockstep::preflight
