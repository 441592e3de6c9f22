#include "lockstep/host/cgroup.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::host {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

struct CgroupLine {
  std::string controllers, path;  // version 2 has no controllers
};
std::vector<CgroupLine> cgroup_lines(const fs::path& membership) {
  std::vector<CgroupLine> lines;
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    lines.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return lines;
}

bool lists(const std::string& controllers, const std::string& name) {
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

// Calls visit(folder) for the group and each of its parents. In a container the path may lead outside the mount; the
// folders that exist contain the limits that apply.
template <class Visit>
void each_group(const fs::path& root, const std::string& path, Visit visit) {
  fs::path relative = fs::path(path).relative_path();
  while (true) {
    visit(relative.empty() ? root : root / relative);
    if (relative.empty()) return;
    relative = relative.parent_path();
  }
}

void tighten(double& quota, double used, double period) {
  if (used <= 0 || period <= 0) return;
  quota = quota == 0 ? used / period : std::min(quota, used / period);
}

// The value of a line "NAME VALUE"; 0: there is none.
std::uint64_t value_in(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  for (std::uint64_t value = 0; file >> word >> value;) {
    if (word == name) return value;
  }
  return 0;
}

struct MemoryFiles {
  const char *limit, *usage, *reclaimable;  // the last one is a name in memory.stat
};
constexpr MemoryFiles kVersionTwo{"memory.max", "memory.current", "inactive_file"};
constexpr MemoryFiles kVersionOne{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void tighten(std::uint64_t& left, const fs::path& group, const MemoryFiles& files) {
  std::istringstream limit_text(first_line(group / files.limit)), usage_text(first_line(group / files.usage));
  std::uint64_t limit = 0, usage = 0;  // without a limit "max", which is no number
  if (!(limit_text >> limit) || !(usage_text >> usage)) return;
  const std::uint64_t kept = usage - std::min(usage, value_in(group / "memory.stat", files.reclaimable));
  left = std::min(left, limit - std::min(limit, kept));
}

}  // namespace

double cgroup_cpu_quota(const fs::path& membership, const fs::path& mount) {
  double quota = 0;
  for (const CgroupLine& line : cgroup_lines(membership)) {
    if (line.controllers.empty()) {
      each_group(mount, line.path, [&](const fs::path& group) {
        std::istringstream text(first_line(group / "cpu.max"));  // "200000 100000", or "max 100000"
        double used = 0, period = 0;
        if (text >> used >> period) tighten(quota, used, period);
      });
    } else if (lists(line.controllers, "cpu")) {
      each_group(mount / "cpu", line.path, [&](const fs::path& group) {
        std::istringstream used_text(first_line(group / "cpu.cfs_quota_us"));  // -1: no limit
        std::istringstream period_text(first_line(group / "cpu.cfs_period_us"));
        double used = 0, period = 0;
        if (used_text >> used && period_text >> period) tighten(quota, used, period);
      });
    }
  }
  return quota;
}

std::size_t cgroup_memory_left(const fs::path& membership, const fs::path& mount) {
  std::uint64_t left = std::numeric_limits<std::size_t>::max();
  for (const CgroupLine& line : cgroup_lines(membership)) {
    if (line.controllers.empty())
      each_group(mount, line.path, [&](const fs::path& group) { tighten(left, group, kVersionTwo); });
    else if (lists(line.controllers, "memory"))
      each_group(mount / "memory", line.path, [&](const fs::path& group) { tighten(left, group, kVersionOne); });
  }
  return left;
}

}  // namespace lockstep::host
