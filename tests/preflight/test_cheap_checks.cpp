#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <vector>

#include "lockstep/io/child_process.h"
#include "tests/preflight/support.h"

namespace lockstep::test {
namespace {

using nlohmann::json;
using namespace preflight;

TEST(SameTexts, AreGreenAndADifferenceIsToldWithItsLineAndRanks) {
  expect_green(kOptions, {"a\nb", "a\nb", "a\nb"});
  const std::string text = concluded(kOptions, {"a\nb", "a\nc", "a\nb"});
  expect_says(text, {"red ", "the options must be the same on all ranks", "rank 0 (host node1) has 'b'",
                     "rank 1 (host node2) has 'c'", "1 of 3 ranks differ from rank 0: 1"});
}

TEST(SameTexts, ThatNoRankHasAreNotLookedAt) {
  EXPECT_EQ(concluded(kData, {"", ""}), "");
  expect_says(concluded(kData, {"", "60000 samples"}), {"red", "the data must be the same"});
}

TEST(SameTexts, ABuildSaysHowOthersAreAllowed) {
  expect_says(concluded(kBuild, {"ab12", "cd34"}), {"red", "LOCKSTEP_ALLOW_BUILDS", "copy the program"});
}

json files(std::vector<std::string> missing, std::vector<std::string> unfit = {}) {
  return {{"missing", std::move(missing)}, {"unfit", std::move(unfit)}};
}

TEST(Files, ThatNoHostHasAreRed) {
  expect_green(kFiles, {files({}), files({})});
  expect_says(concluded(kFiles, {files({"no program '/p'"})}), {"red ", "node1", "no program '/p'"});
  expect_says(concluded(kFiles, {files({"no folder '/d'"}), files({"no folder '/d'"})}), {"red ", "node1, node2"});
  expect_says(concluded(kFiles, {files({}), files({}, {"'/p' is not executable"})}), {"red ", "node2", "executable"});
}

TEST(Files, ThatSomeHostsLackAreADifference) {
  expect_green(kFiles, {files({}), files({"no program '/p'"})});  // the check of the build tells it
}

json mpi(const char* version, const char* build) { return {{"version", version}, {"build", build}}; }

TEST(Mpi, VersionsAndBuildsAreCompared) {
  expect_green(kMpi, {mpi("Open MPI v4.1.4", "1"), mpi("Open MPI v4.1.4", "1")});
  expect_says(concluded(kMpi, {mpi("Open MPI v4.1.4", "1"), mpi("Open MPI v4.1.5", "2")}),
              {"red", "the MPI library must be the same", "'Open MPI v4.1.5'", "apt-get install openmpi-bin"});
  expect_says(concluded(kMpi, {mpi("MPICH Version: 4.0.2", "1"), mpi("MPICH Version: 4.1", "1")}),
              {"apt-get install mpich libmpich12"});
  expect_says(concluded(kMpi, {mpi("Intel(R) MPI Library 2021.9", "1"), mpi("Intel(R) MPI Library 2021.8", "1")}),
              {"install the same MPI package on all hosts\n"});
  expect_says(concluded(kMpi, {mpi("Open MPI v4.1.4", "1"), mpi("Open MPI v4.1.4", "2")}),
              {"red", "the build of the MPI library"});
}

TEST(Libraries, AnotherBuildIsYellow) {
  expect_green(kLibraries, {"libm.so.6 1\n", "libm.so.6 1\n"});
  expect_says(concluded(kLibraries, {"libm.so.6 1\n", "libm.so.6 2\n"}), {"yellow", "'libm.so.6 2'"});
}

json host(const char* name, const char* key) { return {{"name", name}, {"key", key}}; }

TEST(HostNames, OneNameOnTwoMachinesIsRed) {
  expect_green(kHostNames, {host("a", "1"), host("b", "2")});
  expect_green(kHostNames, {host("a", "1"), host("a", "1")});  // two NUMA domains
  expect_says(concluded(kHostNames, {host("a", "1"), host("a", "2")}),
              {"red a: 2 nodes bear the host name a", "hostname"});
}

json cores(int ranks, int threads, std::vector<int> mask, int node_cores, double quota = 0) {
  return {{"threads", threads}, {"cores", mask}, {"node_cores", node_cores}, {"quota", quota}, {"ranks", ranks}};
}

TEST(Cores, OneProcessAnswersForTheRanksToCome) {
  expect_green(kCores, {cores(2, 2, {0, 1, 2, 3}, 4)});
  expect_says(concluded(kCores, {cores(2, 2, {0, 1, 2, 3}, 4), cores(8, 2, {0, 1, 2, 3}, 4)}),
              {"yellow node2: 8 ranks x 2 threads", "are more than the 4 cores", "use fewer ranks or --threads"});
}

TEST(Cores, BindingAndQuotaAreTold) {
  expect_says(concluded(kCores, {cores(1, 2, {0}, 4)}), {"yellow node1: rank 0 is bound to 1 core and has 2 threads"});
  expect_says(concluded(kCores, {cores(1, 4, {0, 1, 2, 3}, 4, 2)}), {"yellow", "2 cores of the container's CPU limit"});
}

json shm(double total, double free, int ranks) { return {{"total", total}, {"free", free}, {"ranks", ranks}}; }

TEST(SharedMemory, AContainersDefaultIsYellowAndNoneIsRed) {
  expect_green(kSharedMemory, {shm(12000, 11000, 8), shm(12000, 9000, 8)});
  expect_says(concluded(kSharedMemory, {shm(12000, 11000, 2), shm(64, 64, 2)}),
              {"yellow node2: /dev/shm has 64 MiB, 64 of them free", "--shm-size=2g"});
  expect_says(concluded(kSharedMemory, {shm(64, 3, 2)}), {"red node1"});
  expect_says(concluded(kSharedMemory, {shm(12000, 3, 2)}), {"remove what earlier jobs left"});
  // MPI's segments of many ranks are more than a model.
  expect_says(concluded(kSharedMemory, {shm(512, 512, 128)}),
              {"red node1: /dev/shm has 512 MiB, 512 of them free, expected 1024 or more for 128 ranks", "remount"});
  expect_green(kSharedMemory, {shm(1024, 1024, 128)});
}

json copies(int scope, int error) { return {{"scope", scope}, {"error", error}}; }

TEST(DirectCopies, WhatForbidsThemIsNamed) {
  expect_green(kDirectCopies, {copies(0, 0), copies(1, 0), copies(3, 0)});
  expect_says(concluded(kDirectCopies, {copies(1, 0), copies(2, 1)}),
              {"yellow node2", "errno 1, ptrace_scope 2, expected 0 or 1", "sysctl",
               "--mca btl_vader_single_copy_mechanism none"});
  expect_says(concluded(kDirectCopies, {copies(0, 1)}),
              {"yellow node1", "(errno 1)", "SYS_PTRACE", "--mca btl_vader_single_copy_mechanism none"});
}

// Whatever the scope is here, the test itself gives an answer: 0, or the errno of a scope or a filter that forbids it.
TEST(DirectCopies, AreTriedBetweenRanks) {
  AloneExchange exchange;
  EXPECT_EQ(kDirectCopies.gather({.local_ranks = 1, .host = "node1"}, exchange).at("error"), 0);
  const json facts = kDirectCopies.gather({.local_ranks = 2, .host = "node1"}, exchange);
  ASSERT_TRUE(facts.is_object());
  if (facts.at("scope") == 1) {
    EXPECT_EQ(facts.at("error"), 0) << "MPI lets other processes read its ranks";
  }
}

// As a container's filter of system calls does. QEMU has neither filters nor copies.
void forbid_direct_copies() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(rules), .filter = rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST(DirectCopies, AreNotTriedWhereTheCallerWantsNone) {
  io::ChildProcess child({}, [](int pipe) {
    forbid_direct_copies();
    const char* names[] = {"OMPI_MCA_btl_vader_single_copy_mechanism", "OMPI_MCA_btl_sm_single_copy_mechanism"};
    for (const char* name : names) unsetenv(name);
    AloneExchange exchange;
    const auto error = [&exchange]() -> int {
      return kDirectCopies.gather({.local_ranks = 2, .host = "node1"}, exchange).at("error");
    };
    std::vector<int> errors{error()};
    for (const char* name : names) {
      setenv(name, "none", 1);
      errors.push_back(error());
      unsetenv(name);
    }
    io::write_or_exit(pipe, std::as_bytes(std::span(errors)));
  });
  int errors[3] = {0, -1, -1};
  ASSERT_TRUE(child.read(std::as_writable_bytes(std::span(errors)))) << child.wait();
  EXPECT_NE(errors[0], 0);
  EXPECT_EQ(errors[1], 0);
  EXPECT_EQ(errors[2], 0);
}

TEST(Limits, LowOnesAreNamedWithTheirUlimit) {
  expect_green(kLimits, {json::object(), {{"files", 1024}, {"stack", 8}}});
  expect_says(concluded(kLimits, {json::object(), {{"files", 64}}}),
              {"yellow node2: at most 64 open files", "expected 512", "ulimit -n"});
  expect_says(concluded(kLimits, {{{"addresses", 1000}}}), {"1000 MiB of address space (ulimit -v)"});
}

TEST(Clocks, TheHostThatIsOffIsNamed) {
  expect_green(kClocks, {1e9, 1e9 + 1});
  expect_says(concluded(kClocks, {1e9, 1e9 + 60}), {"yellow node2: the clock is 60 s ahead of that of node1"});
  expect_says(concluded(kClocks, {1e9 - 60, 1e9, 1e9 + 0.5}), {"yellow node1: the clock is 60 s behind that of most"});
}

json disk(double free, bool writable = true, double files = 1e6) {
  return {{"folder", "/runs"}, {"writable", writable}, {"files", files}, {"free", free}};
}

TEST(Disk, OnlyRankZeroNeedsTheRoom) {
  expect_green(kDisk, {disk(5000), disk(5000)});
  expect_says(concluded(kDisk, {disk(1), disk(5000)}), {"red node1: the file system of /runs has 1 MiB", "--output"});
  expect_says(concluded(kDisk, {disk(5000), disk(1)}), {"yellow node2"});
  expect_says(concluded(kDisk, {disk(500)}), {"yellow node1"});
  expect_says(concluded(kDisk, {disk(5000, false)}), {"red node1: /runs cannot be written to"});
  expect_says(concluded(kDisk, {disk(5000, true, 3)}), {"red node1: the file system of /runs takes 3 more files"});
  const std::string few = concluded(kDisk, {disk(5000), disk(5000, true, 20)});
  expect_says(few, {"yellow node2: the file system of /runs takes 20 more files", "expected 64 or more (df -i)"});
  EXPECT_EQ(few.find("MiB"), std::string::npos) << few;
}

}  // namespace
}  // namespace lockstep::test
