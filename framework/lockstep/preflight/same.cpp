#include "lockstep/preflight/same.h"

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"

namespace lockstep::preflight {

std::optional<std::string> difference(std::string_view name, const Facts& facts) {
  std::vector<int> ranks;
  const RankFacts* first = nullptr;
  for (const RankFacts& facts_of_rank : facts) {
    if (facts_of_rank.value == facts.front().value) continue;
    if (first == nullptr) first = &facts_of_rank;
    ranks.push_back(facts_of_rank.rank);
  }
  if (first == nullptr) return std::nullopt;
  const RankFacts& expected = facts.front();
  return comm::difference_text(name, {expected.rank, expected.host, expected.value.get<std::string>()},
                               {first->rank, first->host, first->value.get<std::string>()}, ranks,
                               static_cast<int>(facts.size()));
}

std::vector<Finding> same(std::string_view name, const Facts& facts, Level otherwise, const std::string& mend) {
  if (facts.empty()) return {};
  if (const auto text = difference(name, facts)) return {{.level = otherwise, .what = *text, .mend = mend}};
  return {
      {.what = formatted("the same on {}", facts.size() == 1 ? "the only rank" : formatted("{} ranks", facts.size()))}};
}

std::vector<Finding> or_green(std::vector<Finding> findings, std::string what) {
  if (findings.empty()) findings.push_back({.what = std::move(what)});
  return findings;
}

}  // namespace lockstep::preflight
