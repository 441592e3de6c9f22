// Recognises a launch that went wrong: N processes were started as one job, but each found itself alone because the
// launcher and the MPI library do not speak the same protocol. Pure: works on facts, so every launcher can be tested.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lockstep::comm {

struct LaunchFacts {
  int world_size = 1;
  std::string library;  // as Environment::library() gives it
  // Reads an environment variable; std::nullopt if it is unset.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

// One line that names what was found and what to do, or nothing if the launch is sound. LOCKSTEP_ALLOW_SINGLETONS=1
// declares that independent processes are meant.
std::optional<std::string> launch_problem(const LaunchFacts& facts);

}  // namespace lockstep::comm
