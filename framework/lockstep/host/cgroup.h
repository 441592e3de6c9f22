// The limits of this process's control group and of the groups above it, version 2 or 1, which hwloc does not know.
// Reading never fails: what is not known counts as no limit. `membership` is /proc/self/cgroup and `mount`
// /sys/fs/cgroup, except in tests. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>

namespace lockstep::host {

// The tightest CPU quota, in cores; 0: there is none.
double cgroup_cpu_quota(const std::filesystem::path& membership = "/proc/self/cgroup",
                        const std::filesystem::path& mount = "/sys/fs/cgroup");

// The bytes that the process may take before the tightest limit is reached; file pages that the kernel can drop count
// as free. The largest number: there is no limit. A process that takes more is killed.
std::size_t cgroup_memory_left(const std::filesystem::path& membership = "/proc/self/cgroup",
                               const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace lockstep::host
