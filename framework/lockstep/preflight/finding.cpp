#include "lockstep/preflight/finding.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::preflight {

namespace {

Level level_named(const std::string& name) {
  for (const Level level : {Level::Green, Level::Yellow, Level::Red}) {
    if (name == name_of(level)) return level;
  }
  fail("preflight", "a finding has the level '{}', expected green, yellow or red", name);
}

}  // namespace

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
  for (const nlohmann::json& f : list)
    findings.push_back({.level = level_named(f.at("level")),
                        .what = f.at("what"),
                        .where = f.at("where"),
                        .mend = f.at("mend"),
                        .check = f.at("check")});
  return findings;
}

}  // namespace lockstep::preflight
