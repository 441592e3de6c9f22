#include "lockstep/host/machine.h"

#include <hwloc.h>

#include <set>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::host {
namespace {

struct Bits {
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  Bits() { check(set != nullptr, "machine", "no memory for a set of processors"); }
  ~Bits() { hwloc_bitmap_free(set); }
  Bits(const Bits&) = delete;
  Bits& operator=(const Bits&) = delete;
};

std::vector<int> list(hwloc_const_bitmap_t set) {
  std::vector<int> all;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) all.push_back(cpu);
  return all;
}

}  // namespace

void Machine::Destroy::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Machine::Machine(const char* description) {
  hwloc_topology* made = nullptr;
  check(hwloc_topology_init(&made) == 0, "machine", "hwloc cannot be used");
  topology_.reset(made);
  // Cards and graphics processors take long to look for.
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_NONE);
  check(description == nullptr || hwloc_topology_set_synthetic(made, description) == 0, "machine",
        "'{}' describes no machine, expected words such as numa:2 core:4 pu:2",
        description == nullptr ? "" : description);
  check(hwloc_topology_load(made) == 0, "machine", "hwloc cannot tell what this machine is");
}

const Machine& Machine::here() {
  static const Machine machine(nullptr);
  return machine;
}

Machine Machine::made_up(const std::string& description) { return Machine(description.c_str()); }

std::vector<int> Machine::cpus() const { return list(hwloc_topology_get_allowed_cpuset(topology_.get())); }

std::vector<int> Machine::cores_of(std::span<const int> cpus) const {
  std::set<int> cores;
  for (const int cpu : cpus) {
    hwloc_obj_t at = hwloc_get_pu_obj_by_os_index(topology_.get(), static_cast<unsigned>(cpu));
    while (at != nullptr && at->type != HWLOC_OBJ_CORE) at = at->parent;
    cores.insert(at == nullptr ? cpu : hwloc_bitmap_first(at->complete_cpuset));
  }
  return {cores.begin(), cores.end()};
}

std::string Machine::numa_nodes(std::span<const int> cpus) const {
  Bits wanted;
  for (const int cpu : cpus) hwloc_bitmap_set(wanted.set, static_cast<unsigned>(cpu));
  std::set<unsigned> found;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    if (hwloc_bitmap_intersects(node->cpuset, wanted.set) != 0) found.insert(node->os_index);
  }
  return joined(found, ",");
}

std::vector<int> Machine::binding() const {
  const Bits mask;
  if (hwloc_get_cpubind(topology_.get(), mask.set, HWLOC_CPUBIND_THREAD) != 0) return cpus();
  return list(mask.set);
}

bool Machine::bind_process(std::span<const int> cpus) const {
  const Bits mask;
  for (const int cpu : cpus) hwloc_bitmap_set(mask.set, static_cast<unsigned>(cpu));
  return hwloc_set_cpubind(topology_.get(), mask.set, HWLOC_CPUBIND_PROCESS) == 0;
}

}  // namespace lockstep::host
