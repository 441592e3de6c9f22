// Node 0's wait for the other nodes.
#pragma once

#include <chrono>
#include <optional>

#include "tools/launcher/messages.h"
#include "tools/launcher/rendezvous.h"
#include "tools/supervisor/signals.h"

namespace lockstep::launcher {

struct GatheringOptions {
  std::chrono::seconds limit{300};
  bool allow_differences = false;  // nodes may differ in program and arguments
};

// Until all nodes are there and fit together; otherwise how the launch ends.
std::optional<Done> gather(const GatheringOptions& options, Rendezvous& rendezvous, supervisor::Signals& signals);

}  // namespace lockstep::launcher
