// A check: what it gathers on each rank, and what follows from the facts of all ranks. One object per file in checks/,
// one line per object in table.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/preflight/exchange.h"
#include "lockstep/preflight/finding.h"
#include "lockstep/preflight/subject.h"

namespace lockstep::preflight {

struct RankFacts {
  int rank = 0, node = 0;
  std::string host;
  nlohmann::json value{};
};
using Facts = std::vector<RankFacts>;  // by rank; of checks of a node, only the ranks that speak for one

enum class Cost : std::uint8_t {
  Required,  // cheap, and at the start of every job: without it the job could compute something wrong, or hang
  Cheap,     // at the start of every job, without --no-preflight: some milliseconds, no messages of its own
  Thorough,  // by `lockstep doctor` alone: it connects hosts or measures
};

struct Check {
  std::string_view name;
  Cost cost;
  // On every rank. Null: this rank has nothing to say. Only a thorough one uses the exchange; it may throw between two
  // messages.
  nlohmann::json (*gather)(const Subject&, Exchange&);
  // Pure. At least one finding, unless there are no facts.
  std::vector<Finding> (*conclude)(const Facts&);
};

// For conclusions: one green finding, unless there is another one.
std::vector<Finding> or_green(std::vector<Finding> findings, std::string what);

}  // namespace lockstep::preflight
