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

// Iterations of libgomp's waiting loop, 10 to 30 ns each. libgomp's default is 300000.
constexpr const char* kShortSpin = "1000";

constexpr const char* kShortBlasSpin = "14";  // the same for OpenBLAS: 2^14 ticks; its default is 2^26

// Open MPI's default without "put": in version 4.1, long messages over TCP reach 64% of a 1 Gbit/s link with put, and
// 95% with send.
constexpr const char* kTcpFlags = "send,inplace,need-ack,need-csum,hetero-rdma";

constexpr int kOwnPool = 1;  // openblas_get_parallel(): 0 serial, 1 threads of its own, 2 OpenMP's

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void start_again(char** argv) {
  // Without an interpreter's base address, the process is ld.so itself, and argv does not begin with the program.
  if (getauxval(AT_BASE) == 0) return;
  // Resolves the link: the kernel would otherwise name the process "exe".
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), argv);
}

}  // namespace

bool oversubscribed(const Cores& cores, int local_ranks, int threads) {
  const int wanted = local_ranks * threads;
  return threads > cores.physical || wanted > cores.node_cores || (cores.quota > 0 && wanted > cores.quota);
}

ProcessSettings process_settings(const ProcessFacts& facts) {
  ProcessSettings settings;
  const auto set = [&](const char* name, std::string value) {
    if (!facts.variable(name)) settings.variables.push_back({name, std::move(value)});
  };
  const bool tight = oversubscribed(facts.cores, facts.local_ranks, facts.threads);
  if (tight && facts.local_ranks > 1) set("OMPI_MCA_mpi_yield_when_idle", "1");  // MPI_Init reads it later
  set("OMPI_MCA_btl_tcp_flags", kTcpFlags);
  const std::size_t read_later = settings.variables.size();
  if (facts.threads > 1 && !facts.variable("OMP_WAIT_POLICY")) set("GOMP_SPINCOUNT", tight ? "0" : kShortSpin);
  if (facts.blas_pool > facts.threads) set("OPENBLAS_NUM_THREADS", std::to_string(facts.threads));
  if (facts.blas_pool > 0 && facts.threads > 1) set("OPENBLAS_THREAD_TIMEOUT", kShortBlasSpin);
  settings.reload = settings.variables.size() > read_later;
  return settings;
}

void apply_process_settings(int local_ranks, int threads, char** argv) {
  const Cores cores = available_cores();
  const int compute = budget(cores, {.local_ranks = local_ranks, .threads = threads, .loaders = 0}).compute;
  const ProcessSettings settings =
      process_settings({.cores = cores,
                        .local_ranks = local_ranks,
                        .threads = compute,
                        .blas_pool = openblas_get_parallel() == kOwnPool ? openblas_get_num_threads() : 0,
                        .variable = environment});
  // The restarted program finds the variables set, and does not restart again.
  for (const auto& [name, value] : settings.variables) {
    if (setenv(name.c_str(), value.c_str(), 1) != 0) return;
  }
  if (settings.reload) start_again(argv);
}

}  // namespace lockstep::host
