#include "lockstep/host/threads.h"

#include <omp.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/host/blas.h"
#include "lockstep/host/cgroup.h"
#include "lockstep/host/machine.h"

namespace lockstep::host {
namespace {

constexpr long kMostThreads = 4096;  // limit per rank, as for --threads

// Of OpenMP; empty: it has no places, and pins no thread.
std::set<int> cpus_of_places() {
  std::set<int> cpus;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> of_place(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, of_place.data());
    cpus.insert(of_place.begin(), of_place.end());
  }
  return cpus;
}

std::string cpuinfo_value(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0;
    const char* end = part.data() + part.size();
    auto [after, error] = std::from_chars(part.data(), end, first);
    if (error != std::errc{}) continue;
    int last = first;
    if (after != end && *after == '-') std::from_chars(after + 1, end, last);
    constexpr int kMost = 1 << 20;  // a larger number of CPUs means that the text is damaged
    if (first < 0 || last >= kMost) continue;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> process_cpus() {
  const std::set<int> cpus = cpus_of_places();
  return cpus.empty() ? Machine::here().binding() : std::vector<int>(cpus.begin(), cpus.end());
}

bool leave_first_place() {
  const std::set<int> cpus = cpus_of_places();
  return cpus.empty() || Machine::here().bind_process(std::vector<int>(cpus.begin(), cpus.end()));
}

Cores available_cores() { return available_cores(process_cpus()); }

Cores available_cores(std::vector<int> cpus) {
  const Machine& machine = Machine::here();
  Cores cores;
  cores.cpus = std::move(cpus);
  cores.cores = machine.cores_of(cores.cpus);
  cores.physical = std::max(1, static_cast<int>(cores.cores.size()));
  cores.node_cpus = std::max(1, static_cast<int>(machine.cpus().size()));
  cores.node_cores = std::max(1, static_cast<int>(machine.cores().size()));
  cores.quota = cgroup_cpu_quota();
  return cores;
}

int ranks_sharing(std::span<const std::vector<int>> masks, int self) {
  const std::vector<int>& mine = masks[static_cast<std::size_t>(self)];
  const auto overlaps = [&](const std::vector<int>& other) {
    return std::any_of(mine.begin(), mine.end(),
                       [&](int cpu) { return std::find(other.begin(), other.end(), cpu) != other.end(); });
  };
  return std::max(1, static_cast<int>(std::count_if(masks.begin(), masks.end(), overlaps)));
}

ThreadBudget budget(const Cores& cores, const BudgetRequest& request) {
  const int local_ranks = std::max(1, request.local_ranks);
  int sharing = request.sharing;
  if (sharing <= 0) {
    // If the mask is no larger than an equal part of the node, the launcher has set it for this rank alone.
    const bool bound = static_cast<int>(cores.cpus.size()) * local_ranks <= cores.node_cpus;
    sharing = bound ? 1 : local_ranks;
  }
  int share = std::max(1, cores.physical / sharing);
  if (cores.quota > 0) {  // a quota limits all ranks of the node together, for any masks
    share = std::min(share, std::max(1, static_cast<int>(std::floor(cores.quota / local_ranks))));
  }
  // One loader thread suffices for about sixteen cores of training. With fewer than eight cores it shares the compute
  // cores: a core of its own would cost more than the interruptions.
  const int loaders = request.loaders >= 0 ? request.loaders : std::max(1, share / 16);
  const int left = share >= 8 ? std::max(1, share - loaders) : share;
  return {.compute = request.threads > 0 ? request.threads : left, .loaders = loaders};
}

int environment_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const long threads = std::strtol(text, &end, 10);  // "8,2" has nested levels; the outermost one counts
  while (*end == ' ') ++end;
  check(end != text && (*end == '\0' || *end == ',') && threads >= 1 && threads <= kMostThreads, "threads",
        "OMP_NUM_THREADS is {}, expected 1 to {}", text, kMostThreads);
  return static_cast<int>(threads);
}

ThreadBudget budget(int local_ranks, int requested_threads, int requested_loaders) {
  return budget(available_cores(), {.local_ranks = local_ranks,
                                    .threads = requested_threads > 0 ? requested_threads : environment_threads(),
                                    .loaders = requested_loaders});
}

void apply(const ThreadBudget& budget) {
  // With fewer threads than requested, loops whose parts wait for each other, as oneDNN's, would never end.
  check(
      omp_get_thread_limit() >= budget.compute, "threads",
      "OMP_THREAD_LIMIT is {}, expected at least the {} threads that each rank computes with (--threads), or no limit",
      omp_get_thread_limit(), budget.compute);
  omp_set_dynamic(0);
  set_blas_threads(budget.compute);
  omp_set_num_threads(budget.compute);
}

bool has_bf16_instructions() {
  const std::string flags = formatted(" {} {} ", cpuinfo_value("flags"), cpuinfo_value("Features"));
  return flags.find(" avx512_bf16 ") != std::string::npos || flags.find(" bf16 ") != std::string::npos;
}

CpuInfo cpu_info() {
  CpuInfo info;
  info.model = cpuinfo_value("model name");
  if (utsname name; info.model.empty() && uname(&name) == 0) info.model = name.machine;
  // The kernel lists the instruction sets whose registers it saves on a context switch; CPUID alone does not tell that.
  const std::string flags = formatted(" {} {} ", cpuinfo_value("flags"), cpuinfo_value("Features"));
  const auto has = [&](const char* flag) { return flags.find(formatted(" {} ", flag)) != std::string::npos; };
  info.instructions = has("avx512f") && has("avx512bw") ? "avx512"
                      : has("avx2") && has("fma")       ? "avx2"
                      : has("avx")                      ? "avx"
                      : has("sse2")                     ? "sse"
                      : has("sve")                      ? "sve"
                      : has("asimd")                    ? "neon"
                                                        : "scalar";
  info.blas = blas_facts().name;
  return info;
}

}  // namespace lockstep::host
