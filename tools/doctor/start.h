// The doctor's own start of mpirun with the settings that the job will have: that daemons start on all hosts, and what
// the ranks see.
#pragma once

#include <string>
#include <vector>

#include "lockstep/launch/host_list.h"
#include "lockstep/launch/mpirun_kind.h"
#include "lockstep/preflight/finding.h"
#include "tools/doctor/options.h"

namespace lockstep::tools {

struct StartSubject {
  launch::HostList hosts;
  std::string program;  // this one's path, the same on all hosts
  launch::MpirunKind kind = launch::MpirunKind::OpenMpi;
};

// Starts `program doctor --cheap --json` by mpirun. Its findings that are not green, after one about the start itself.
std::vector<preflight::Finding> try_start(const DoctorOptions& options, const StartSubject& subject);

}  // namespace lockstep::tools
