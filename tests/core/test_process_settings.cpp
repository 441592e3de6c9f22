#include "lockstep/host/process_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "lockstep/core/format.h"
#include "lockstep/host/machine.h"

namespace lockstep {
namespace {

host::Cores cores_of(int physical, int node_cores) {
  host::Cores cores;
  cores.physical = physical;
  cores.node_cores = node_cores;
  return cores;
}

struct Case {
  host::Cores cores;
  int local_ranks = 1, threads = 1, blas_pool = 0;
  std::map<std::string, std::string> environment{};
  bool tcp_is_set = true;  // by the user: of no interest but where it is
};

constexpr const char* kTcpFlags = "OMPI_MCA_btl_tcp_flags";

host::ProcessSettings settings_of(const Case& c) {
  return host::process_settings({.cores = c.cores,
                                 .local_ranks = c.local_ranks,
                                 .threads = c.threads,
                                 .blas_pool = c.blas_pool,
                                 .variable = [&](const std::string& name) {
                                   if (c.tcp_is_set && name == kTcpFlags) return std::optional<std::string>("send");
                                   const auto found = c.environment.find(name);
                                   return found == c.environment.end() ? std::nullopt : std::optional(found->second);
                                 }});
}

std::string text_of(const Case& c) {
  std::string text;
  for (const auto& [name, value] : settings_of(c).variables) text.append(name).append("=").append(value).append(" ");
  return text;
}

TEST(Crowded, ComparesThreadsWithMaskNodeAndQuota) {
  EXPECT_FALSE(host::oversubscribed(cores_of(4, 4), 2, 2));
  EXPECT_TRUE(host::oversubscribed(cores_of(4, 4), 3, 2));
  EXPECT_TRUE(host::oversubscribed(cores_of(1, 4), 1, 2));
  host::Cores limited = cores_of(4, 4);
  limited.quota = 2.5;
  EXPECT_FALSE(host::oversubscribed(limited, 1, 2));
  EXPECT_TRUE(host::oversubscribed(limited, 1, 3));
}

TEST(ProcessSettings, OneThreadWithItsCoreNeedsNone) {
  const host::ProcessSettings settings = settings_of({.cores = cores_of(2, 2), .local_ranks = 2});
  EXPECT_TRUE(settings.variables.empty());
  EXPECT_FALSE(settings.reload);
}

TEST(ProcessSettings, LongMessagesOverTcpAreSent) {
  const host::ProcessSettings settings = settings_of({.cores = cores_of(2, 2), .tcp_is_set = false});
  ASSERT_EQ(settings.variables.size(), 1u);
  EXPECT_EQ(settings.variables[0].name, kTcpFlags);
  EXPECT_EQ(settings.variables[0].value.find("put"), std::string::npos);
  EXPECT_FALSE(settings.reload);
}

TEST(ProcessSettings, ThreadsWithCoresSpinShortly) {
  const Case c{.cores = cores_of(2, 2), .threads = 2};
  EXPECT_EQ(text_of(c), "GOMP_SPINCOUNT=1000 ");
  EXPECT_TRUE(settings_of(c).reload);
}

TEST(ProcessSettings, CrowdedThreadsAndRanksDoNotSpin) {
  EXPECT_EQ(text_of({.cores = cores_of(2, 2), .local_ranks = 2, .threads = 2}),
            "OMPI_MCA_mpi_yield_when_idle=1 GOMP_SPINCOUNT=0 ");
  EXPECT_EQ(text_of({.cores = cores_of(1, 2), .threads = 2}), "GOMP_SPINCOUNT=0 ");
  // MPI reads its own later: nothing to start again for.
  EXPECT_FALSE(settings_of({.cores = cores_of(2, 2), .local_ranks = 4}).reload);
}

TEST(ProcessSettings, OpenBlasStartsNoMoreThanTheBudget) {
  EXPECT_EQ(text_of({.cores = cores_of(8, 8), .local_ranks = 8, .blas_pool = 8}), "OPENBLAS_NUM_THREADS=1 ");
  EXPECT_EQ(text_of({.cores = cores_of(8, 8), .threads = 8, .blas_pool = 8}),
            "GOMP_SPINCOUNT=1000 OPENBLAS_THREAD_TIMEOUT=14 ");
}

TEST(ProcessSettings, TheUsersWin) {
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    const host::ProcessSettings settings =
        settings_of({.cores = cores_of(2, 2), .threads = 2, .environment = {{name, "active"}}});
    EXPECT_TRUE(settings.variables.empty()) << name;
    EXPECT_FALSE(settings.reload) << name;
  }
  EXPECT_EQ(text_of({.cores = cores_of(8, 8), .blas_pool = 8, .environment = {{"OPENBLAS_NUM_THREADS", "4"}}}), "");
}

// The second start finds the first one's variables, and with them nothing to do.
TEST(ProcessSettings, OneNewStartIsEnough) {
  Case c{.cores = cores_of(2, 2), .local_ranks = 4, .threads = 2, .blas_pool = 8};
  for (const auto& [name, value] : settings_of(c).variables) c.environment[name] = value;
  EXPECT_TRUE(settings_of(c).variables.empty());
  EXPECT_FALSE(settings_of(c).reload);
}

bool is_bound_by_default(const host::Cores& cores, int threads, std::map<std::string, std::string> environment) {
  return host::is_bound_by_default(
      {.cores = cores, .local_ranks = 2, .threads = threads, .variable = [&](const std::string& name) {
         const auto found = environment.find(name);
         return found == environment.end() ? std::nullopt : std::optional(found->second);
       }});
}

TEST(DefaultBinding, IsSeenWhereNobodyAskedForItAndThreadsWouldWait) {
  const std::map<std::string, std::string> bound{{"OMPI_MCA_orte_bound_at_launch", "1"}};
  EXPECT_TRUE(is_bound_by_default(cores_of(1, 16), 0, bound));
  EXPECT_TRUE(is_bound_by_default(cores_of(1, 16), 4, bound));
  EXPECT_FALSE(is_bound_by_default(cores_of(1, 16), 1, bound));  // the thread has its core
  EXPECT_FALSE(is_bound_by_default(cores_of(1, 2), 0, bound));   // so has each rank
  EXPECT_FALSE(is_bound_by_default(cores_of(8, 16), 0, bound));
  EXPECT_FALSE(is_bound_by_default(cores_of(1, 16), 0, {}));  // srun's, or taskset's
}

TEST(DefaultBinding, WhatWasAskedForStays) {
  for (const char* asked :
       {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy", "OMPI_MCA_hwloc_base_cpu_set"})
    EXPECT_FALSE(is_bound_by_default(cores_of(1, 16), 0, {{"OMPI_MCA_orte_bound_at_launch", "1"}, {asked, "core"}}))
        << asked;
  EXPECT_FALSE(
      is_bound_by_default(cores_of(1, 16), 0, {{"OMPI_MCA_orte_bound_at_launch", "1"}, {"LOCKSTEP_BIND", "cores"}}));
}

// Set for the process that is to say which processors it may use.
constexpr const char* kSays = "LOCKSTEP_TEST_SAYS_CPUS";

// What this test says in a process of its own, as libgomp reads these variables while it is loaded.
std::string said_with(const std::string& variables) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      formatted("env -u OMP_PROC_BIND -u OMP_PLACES {} {}=1 '{}' --gtest_filter=Places.* 2>&1", variables, kSays, self);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> block{};
  while (std::fgets(block.data(), static_cast<int>(block.size()), pipe.get()) != nullptr) {
    const std::string line(block.data());
    if (line.starts_with("cpus ")) text += line;
  }
  return text;
}

TEST(Places, OfOpenMpLeaveTheProcessItsProcessors) {
  if (std::getenv(kSays) != nullptr) {
    std::printf("cpus %s\n", joined(host::available_cores().cpus, ",").c_str());
    host::leave_first_place();
    std::printf("cpus of what it starts %s\n", joined(host::Machine::here().binding(), ",").c_str());
    return;
  }
#ifdef __clang__
  GTEST_SKIP() << "clang's libomp makes its places after OpenBLAS's libgomp has pinned the thread: docs/platforms.md";
#endif
  const std::string without = said_with("");
  EXPECT_NE(without, "");
  for (const char* variables : {"OMP_PROC_BIND=close OMP_PLACES=cores", "OMP_PROC_BIND=spread", "OMP_PLACES=threads",
                                "OMP_PROC_BIND=false OMP_PLACES=cores"})
    EXPECT_EQ(said_with(variables), without) << variables;
  const std::string first = formatted("{{{}}}", host::available_cores().cpus.front());
  EXPECT_EQ(said_with(formatted("OMP_PLACES={}", first)).find(','), std::string::npos) << "what the user asks for";
}

}  // namespace
}  // namespace lockstep
