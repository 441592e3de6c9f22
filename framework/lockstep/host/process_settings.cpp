#include "lockstep/host/process_settings.h"

#include <cblas.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lockstep::host {
namespace {

// Turns of libgomp's waiting loop, 10 to 30 ns each. libgomp's own choice is 300000.
constexpr const char* kShortSpin = "1000";

constexpr const char* kShortBlasSpin = "14";  // the same for OpenBLAS: 2^14 ticks; its default is 2^26

// All of Open MPI's default but "put": in 4.1 a long message over TCP that goes by put reaches 0.64 of a cable of 1
// Gbit/s, one that is sent 0.95.
constexpr const char* kTcpFlags = "send,inplace,need-ack,need-csum,hetero-rdma";

constexpr int kOwnPool = 1;  // openblas_get_parallel(): 0 serial, 1 threads of its own, 2 OpenMP's

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void start_again(char** argv) {
  // Without an interpreter's base address the process is ld.so itself, started by name, and argv is not the program's.
  if (getauxval(AT_BASE) == 0) return;
  // Not the link: the kernel would name the process after it.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), argv);
}

}  // namespace

bool crowded(const Cores& cores, int local_ranks, int threads) {
  const int wanted = local_ranks * threads;
  return threads > cores.physical || wanted > cores.node_cores || (cores.quota > 0 && wanted > cores.quota);
}

ProcessSettings process_settings(const ProcessFacts& facts) {
  ProcessSettings settings;
  const auto set = [&](const char* name, std::string value) {
    if (!facts.variable(name)) settings.variables.push_back({name, std::move(value)});
  };
  const bool tight = crowded(facts.cores, facts.local_ranks, facts.threads);
  if (tight && facts.local_ranks > 1) set("OMPI_MCA_mpi_yield_when_idle", "1");  // read by MPI_Init, which is to come
  set("OMPI_MCA_btl_tcp_flags", kTcpFlags);
  const std::size_t read_later = settings.variables.size();
  if (facts.threads > 1 && !facts.variable("OMP_WAIT_POLICY")) set("GOMP_SPINCOUNT", tight ? "0" : kShortSpin);
  if (facts.blas_pool > facts.threads) set("OPENBLAS_NUM_THREADS", std::to_string(facts.threads));
  if (facts.blas_pool > 0 && facts.threads > 1) set("OPENBLAS_THREAD_TIMEOUT", kShortBlasSpin);
  settings.reload = settings.variables.size() > read_later;
  return settings;
}

void settle_process(int local_ranks, int threads, char** argv) {
  const Cores cores = available_cores();
  const int compute = budget(cores, {.local_ranks = local_ranks, .threads = threads, .loaders = 0}).compute;
  const ProcessSettings settings =
      process_settings({.cores = cores,
                        .local_ranks = local_ranks,
                        .threads = compute,
                        .blas_pool = openblas_get_parallel() == kOwnPool ? openblas_get_num_threads() : 0,
                        .variable = environment});
  // Set variables are what ends this: the program that starts again finds them.
  for (const auto& [name, value] : settings.variables) {
    if (setenv(name.c_str(), value.c_str(), 1) != 0) return;
  }
  if (settings.reload) start_again(argv);
}

}  // namespace lockstep::host
