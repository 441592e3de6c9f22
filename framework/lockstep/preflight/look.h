// Runs checks on all ranks together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/preflight/check.h"

namespace lockstep::preflight {

// The table's rows, in the order in which findings are told.
std::span<const Check* const> all_checks();
// Those that a start of a job makes; `advised`: with those that --no-preflight leaves out.
std::vector<const Check*> start_checks(bool advised);

// Gathers, and concludes on rank 0: the same findings on all ranks, red, yellow and green ones in the order of the
// checks. A barrier, a gather and a broadcast, whatever the checks are, and the messages of thorough ones. Collective
// over the exchange. A fact that could not be gathered is a yellow finding; throws AgreedError on all ranks where no
// finding can be told.
std::vector<Finding> look(std::span<const Check* const> checks, const Subject& subject, Exchange& exchange);

}  // namespace lockstep::preflight
