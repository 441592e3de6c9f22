// The doctor's own start of mpirun with the settings that the job will have: that daemons start on all hosts, and what
// the ranks see.
#pragma once

#include <string>
#include <vector>

#include "lockstep/launch/host_list.h"
#include "lockstep/preflight/finding.h"
#include "tools/doctor/options.h"

namespace lockstep::tools {

// mpirun's words before the program.
std::vector<std::string> mpirun_words(const DoctorOptions& options, const launch::HostList& hosts);

// Starts `program doctor --cheap --json` by it. Its findings that are not green, after one about the start itself.
std::vector<preflight::Finding> try_start(const DoctorOptions& options, const launch::HostList& hosts,
                                          const std::string& program);

}  // namespace lockstep::tools
