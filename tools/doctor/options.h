// The options of `lockstep doctor`.
#pragma once

#include <string>

#include "lockstep/launch/ports.h"

namespace lockstep::tools {

struct DoctorOptions {
  std::string hosts{}, hostfile{};  // as mpirun takes them; both empty: this machine, or the job that this runs in
  int ssh_port = 0;
  std::string ssh_args{}, mpi_args{};
  std::string interface {};
  std::string ports{};
  int threads = 0;
  std::string program{}, data_dir{}, output{};
  bool json = false, cheap = false, no_start = false;
  bool probe = false;  // this is a process that a doctor started
};

// LOCKSTEP_INTERFACE and LOCKSTEP_DATA_DIR, where the command line names no network and no folder. A data set is not
// read for --cheap.
void read_environment(DoctorOptions& options);

// "60000-60015"; empty: any port. Throws Error.
launch::PortRange parse_ports(const std::string& text);

}  // namespace lockstep::tools
