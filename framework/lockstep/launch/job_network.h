// The network that a job's hosts talk over, as mpirun takes it in oob_tcp_if_include and btl_tcp_if_include.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/host/network.h"
#include "lockstep/launch/host_list.h"

namespace lockstep::launch {

struct JobNetwork {
  std::string include{};  // "10.1.0.0/16", "eth0,10.2.0.0/16"; empty: not known
  std::string reason{};   // how it was found, for a person
  std::vector<std::string> warnings{};
};

// The questions to the system; tests put in their own.
struct NetworkFacts {
  std::vector<host::Interface> there{};
  std::string host{};
  std::function<std::vector<host::Address>(const std::string&)> resolve = host::resolve;
  std::function<std::optional<host::Interface>(const host::Address&)> route{};

  static NetworkFacts of_this_machine();
};

// With `setting`, the value of LOCKSTEP_INTERFACE, what it means here; names and networks are taken unseen where this
// machine is none of the hosts. Else by the kernel's route to the other hosts: the network of that interface, or a
// wider one that holds the addresses of all. Throws Error for a setting that means nothing here.
JobNetwork find_network(const HostList& list, const std::string& setting, const NetworkFacts& facts);

}  // namespace lockstep::launch
