// The program and the data set that were named are there, and of use. One that only some hosts lack is a difference,
// which the checks of the build and the data tell.
#include <map>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

json gather_files(const Subject& subject, Exchange&) {
  if (!subject.files.named || !subject.speaks()) return nullptr;
  return {{"missing", subject.files.missing}, {"unfit", subject.files.unfit}};
}

std::vector<Finding> conclude_files(const Facts& facts) {
  std::map<std::string, std::set<std::string>> missing, unfit;  // by text: hosts
  std::set<std::string> hosts;
  for (const RankFacts& node : facts) {
    hosts.insert(node.host);
    for (const std::string text : node.value.at("missing")) missing[text].insert(node.host);
    for (const std::string text : node.value.at("unfit")) unfit[text].insert(node.host);
  }
  std::erase_if(missing, [&](const auto& entry) { return entry.second.size() < hosts.size(); });
  missing.merge(unfit);
  std::vector<Finding> findings;
  for (const auto& [text, where] : missing) {
    findings.push_back({.level = Level::Red,
                        .what = text,
                        .where = joined(where, ", "),
                        .mend = "give the path at which it is on each host, or copy it there"});
  }
  return or_green(std::move(findings), "there");
}

}  // namespace

const Check kFiles{"files", Cost::Cheap, gather_files, conclude_files};

}  // namespace lockstep::preflight
