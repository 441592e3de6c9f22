// Made-up facts of ranks, and what a check concludes from them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/preflight/checks/checks.h"

namespace lockstep::test {

// One rank on each of node1, node2, ...
inline preflight::Facts facts_of(const std::vector<nlohmann::json>& values) {
  preflight::Facts facts;
  for (const nlohmann::json& value : values) {
    const int rank = static_cast<int>(facts.size());
    facts.push_back({.rank = rank, .node = rank, .host = "node" + std::to_string(rank + 1), .value = value});
  }
  return facts;
}

// All findings as text, one a line: "red node2: what; mend".
inline std::string concluded(const preflight::Check& check, const std::vector<nlohmann::json>& values) {
  std::string text;
  for (const preflight::Finding& finding : check.conclude(facts_of(values)))
    text += std::string(name_of(finding.level)) + " " + line(finding) + "\n";
  return text;
}

inline void expect_says(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

inline void expect_green(const preflight::Check& check, const std::vector<nlohmann::json>& values) {
  const std::string text = concluded(check, values);
  EXPECT_TRUE(text.starts_with("green ")) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

}  // namespace lockstep::test
