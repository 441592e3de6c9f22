// The processors, cores and NUMA nodes of this machine, or of the container that the process lives in, as hwloc knows
// them. Processors are named by the kernel's numbers, cores by their first hardware thread. Const calls from any
// thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

struct hwloc_topology;

namespace lockstep::host {

class Machine {
 public:
  // This one; looked at once. Throws Error where hwloc cannot tell what the machine is.
  static const Machine& here();
  // One that is made up, in hwloc's words: "numa:2 core:4 pu:2". Throws Error.
  static Machine made_up(const std::string& description);

  std::vector<int> cpus() const;  // hardware threads that the control group allows, ascending
  std::vector<int> cores_of(std::span<const int> cpus) const;
  std::vector<int> cores() const { return cores_of(cpus()); }
  std::string numa_nodes(std::span<const int> cpus) const;  // as "1" or "0,1"; empty: none of them is known

  // The affinity mask of the calling thread, and the setting of that of all threads of this process. false: refused.
  std::vector<int> binding() const;
  bool bind_process(std::span<const int> cpus) const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };
  explicit Machine(const char* description);

  std::unique_ptr<hwloc_topology, Destroy> topology_;
};

}  // namespace lockstep::host
