// The result of a check: green (as it should be), yellow (the job runs, but slowly or at a risk) or red (the job fails,
// hangs or computes something else), with the place and the one line that mends it. Values; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace lockstep::preflight {

enum class Level : std::uint8_t { Green, Yellow, Red };
const char* name_of(Level level);

struct Finding {
  Level level = Level::Green;
  std::string what;     // "64 MiB in /dev/shm, expected 256 MiB or more"
  std::string where{};  // "node2", "node1 to node2"; empty: all hosts
  std::string mend{};   // a command or a setting, in one line; empty where green
  std::string check{};  // name of the check, filled in by look()
};

// "node2: 64 MiB in /dev/shm, expected 256 MiB or more; docker run --shm-size=2g"
std::string line(const Finding& finding);
Level worst(std::span<const Finding> findings);

nlohmann::json to_json(const std::vector<Finding>& findings);
std::vector<Finding> findings_from_json(const nlohmann::json& list);

}  // namespace lockstep::preflight
