#include "lockstep/preflight/finding.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::preflight {

const char* name_of(Level level) { return level == Level::Green ? "green" : level == Level::Yellow ? "yellow" : "red"; }

std::string line(const Finding& finding) {
  return formatted("{}{}{}{}{}", finding.where, finding.where.empty() ? "" : ": ", finding.what,
                   finding.mend.empty() ? "" : "; ", finding.mend);
}

Level worst(std::span<const Finding> findings) {
  Level level = Level::Green;
  for (const Finding& finding : findings) level = std::max(level, finding.level);
  return level;
}

nlohmann::json to_json(const std::vector<Finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& f : findings)
    list.push_back(
        {{"check", f.check}, {"level", name_of(f.level)}, {"what", f.what}, {"where", f.where}, {"mend", f.mend}});
  return list;
}

std::vector<Finding> findings_from_json(const nlohmann::json& list) {
  std::vector<Finding> findings;
  for (const nlohmann::json& f : list) {
    const std::string level = f.at("level");
    findings.push_back({.level = level == "red"      ? Level::Red
                                 : level == "yellow" ? Level::Yellow
                                                     : Level::Green,
                        .what = f.at("what"),
                        .where = f.at("where"),
                        .mend = f.at("mend"),
                        .check = f.at("check")});
  }
  return findings;
}

}  // namespace lockstep::preflight
