// The checks of preflight/ that every start of a job makes. All are collective, and throw AgreedError on all ranks with
// the first red finding of a required check.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/preflight/finding.h"

namespace lockstep::train {

struct RunFacts;

struct StartReport {
  std::vector<preflight::Finding> findings{};
  double seconds = 0;
};

// Before anything that another build of the program would do in another way. Builds may differ where
// LOCKSTEP_ALLOW_BUILDS is set on any rank: hosts of several kinds may need builds of their own.
void check_program(const comm::Communicator& world, const std::string& name);
// Options, threads and, unless --no-preflight, what the job stands on.
StartReport check_start(const RunFacts& facts);
void check_data(const RunFacts& facts);

// A data set's size and a hash of up to 64 samples, spread over all of it, which detects different copies.
std::string fingerprint(const data::Dataset& dataset);

// Findings that are not green, as warnings and errors; how long it took, in the log file.
void tell(const StartReport& report, const comm::Communicator& comm);

}  // namespace lockstep::train
