// How many threads a rank may use: the cores its affinity mask and its control group leave it, shared fairly by the
// ranks of the node, one budget for compute threads (OpenMP and OpenBLAS) and loaders. Counts are physical cores: two
// hardware threads of a core share its arithmetic units. Reading never fails; what the system does not tell counts as
// no limit.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::host {

// Cores as one process sees them.
struct Cores {
  std::vector<int> cpus;   // hardware threads in the affinity mask, ascending
  int physical = 1;        // distinct cores among `cpus`
  std::vector<int> cores;  // those cores, ascending, each by its first hardware thread
  int node_cpus = 1;       // hardware threads of the node, or of the container the process lives in
  int node_cores = 1;      // physical cores of it
  double quota = 0;        // CPU time the control group grants, in cores; 0: no limit
};
Cores available_cores();

// The tightest CPU quota (in cores) of the process's control group and those above it, version 2 or 1; 0 without one.
// hwloc does not know quotas. `membership` is /proc/self/cgroup and `mount` /sys/fs/cgroup, except in tests.
double cgroup_cpu_quota(const std::filesystem::path& membership, const std::filesystem::path& mount);

// "0-3,8" as {0, 1, 2, 3, 8}.
std::vector<int> parse_cpu_list(const std::string& text);

// How many of the local ranks, this one included, have a CPU in common with rank `self`; masks[i] is rank i's `cpus`.
int ranks_sharing(std::span<const std::vector<int>> masks, int self);

struct ThreadBudget {
  int compute = 1;  // OpenMP and OpenBLAS, the calling thread included
  int loaders = 0;  // threads that prepare batches; 0: the training thread does
  bool operator==(const ThreadBudget&) const = default;
};

struct BudgetRequest {
  int local_ranks = 1;  // ranks on this node
  int sharing = 0;      // ranks_sharing() where the masks are known; 0: guessed from the mask's size
  int threads = 0;      // compute threads asked for; 0: as many as there are cores
  int loaders = -1;     // loaders asked for; negative: chosen here
};

// A rank whose mask is its own keeps it whole; ranks that share a mask divide it. What was asked for is granted as it
// stands, even beyond the cores.
ThreadBudget budget(const Cores& cores, const BudgetRequest& request);

// What OMP_NUM_THREADS asks for; 0 without it.
int environment_threads();

// The same for this process and machine; without a request OMP_NUM_THREADS counts as one. Options' --threads and
// --loaders can be passed as they are.
ThreadBudget budget(int local_ranks, int requested_threads, int requested_loaders);

// Sets the calling process's OpenMP and OpenBLAS thread counts. For programs, once, from the main thread: a library
// inside somebody else's job leaves those settings alone.
void apply(const ThreadBudget& budget);

// What logs and checkpoints say about the processor. `blas` names the kernels OpenBLAS chose: another name sums in
// another order.
struct CpuInfo {
  std::string model;         // "AMD EPYC 7B13"
  std::string instructions;  // widest vectors: "avx512", "avx2", "avx", "sse", "sve", "neon", or "scalar"
  std::string blas;          // "OpenBLAS 0.3.21 SkylakeX"
};
CpuInfo cpu_info();
// Whether the processor multiplies bf16 pairs into f32 (AVX-512 BF16, or AArch64's BF16 extension).
bool has_bf16_instructions();

}  // namespace lockstep::host
