// Decides how many threads a rank may use: the cores that its affinity mask and control group allow, shared fairly by
// the ranks of the node, in one budget for compute threads (OpenMP and BLAS) and loaders. Counts are physical
// cores: two hardware threads of a core share its arithmetic units. An unknown quota counts as no limit; a machine that
// hwloc does not know is an Error. Any thread may call these functions, except apply() and leave_first_place().
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep::host {

// The cores that one process may use, and those of its node.
struct Cores {
  std::vector<int> cpus;   // hardware threads that process_cpus() names, ascending
  int physical = 1;        // distinct cores among `cpus`
  std::vector<int> cores;  // those cores, ascending; a core's number is its first hardware thread
  int node_cpus = 1;       // hardware threads of the node, or of the process's container
  int node_cores = 1;      // physical cores of the node, or of the container
  double quota = 0;        // CPU time that the control group grants, in cores; 0: no limit
};
// Reads the cores of this process; of `cpus`, for a process that may use other ones.
Cores available_cores();
Cores available_cores(std::vector<int> cpus);

// The hardware threads that this process may use. With OMP_PROC_BIND or OMP_PLACES, libgomp pins the main thread to the
// first of its places while it is loaded, so the union of all places counts; else the mask of the calling thread.
std::vector<int> process_cpus();

// Lets the main thread run on all places, and with it the threads and programs that it starts, which would otherwise
// all share the first place. OpenMP places the other threads of its teams itself. Nothing where there are no places.
// For programs, in the main thread before OpenMP has threads. false: the system refused.
bool leave_first_place();

// "0-3,8" as {0, 1, 2, 3, 8}.
std::vector<int> parse_cpu_list(const std::string& text);

// How many of the local ranks, this one included, have a CPU in common with rank `self`; masks[i] is rank i's `cpus`.
int ranks_sharing(std::span<const std::vector<int>> masks, int self);

struct ThreadBudget {
  int compute = 1;  // threads of OpenMP and BLAS, including the calling thread
  int loaders = 0;  // threads that prepare batches; 0: the training thread prepares them
  bool operator==(const ThreadBudget&) const = default;
};

struct BudgetRequest {
  int local_ranks = 1;  // ranks on this node
  int sharing = 0;      // ranks_sharing() if the masks are known; 0: estimated from the size of the mask
  int threads = 0;      // requested compute threads; 0: one per core
  int loaders = -1;     // requested loaders; negative: chosen by budget()
};

// Divides the cores: a rank that shares its mask with no other rank gets all its cores; ranks that share a mask divide
// it. Requested numbers are granted unchanged, even if they exceed the cores.
ThreadBudget budget(const Cores& cores, const BudgetRequest& request);

// Returns the number in OMP_NUM_THREADS, the first of a list; 0 if it is not set or empty. Throws Error for a text that
// is no number from 1 to 4096.
int environment_threads();

// Returns the budget for this process on this machine. Without a request, OMP_NUM_THREADS is the request. Takes the
// values of --threads and --loaders unchanged.
ThreadBudget budget(int local_ranks, int requested_threads, int requested_loaders);

// Sets the OpenMP and BLAS thread counts of this process. For programs, once, in the main thread; a library in a
// caller's job leaves those settings alone. Throws Error if OMP_THREAD_LIMIT is smaller than the budget.
void apply(const ThreadBudget& budget);

// The description of the processor in logs and checkpoints. See blas.h for `blas`.
struct CpuInfo {
  std::string model;         // "AMD EPYC 7B13"
  std::string instructions;  // widest vector instructions: "avx512", "avx2", "avx", "sse", "sve", "neon", or "scalar"
  std::string blas;          // "OpenBLAS 0.3.21 SkylakeX"
};
// Reads the description of this machine's processor.
CpuInfo cpu_info();
// Returns whether the processor has bf16 dot products with f32 sums (AVX-512 BF16, or AArch64's BF16 extension).
bool has_bf16_instructions();

}  // namespace lockstep::host
