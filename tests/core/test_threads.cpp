#include "lockstep/core/error.h"
#include "lockstep/host/blas.h"
#include "lockstep/host/cgroup.h"
#include "lockstep/host/threads.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

host::Cores made_cores(int cpus, int node_cpus, int threads_per_core = 1) {
  host::Cores cores;
  cores.cpus.resize(static_cast<std::size_t>(cpus));
  std::iota(cores.cpus.begin(), cores.cpus.end(), 0);
  cores.physical = cpus / threads_per_core;
  cores.node_cpus = node_cpus;
  return cores;
}

TEST(Budget, OneRankTakesTheNode) {
  EXPECT_EQ(host::budget(made_cores(1, 1), {}), (host::ThreadBudget{.compute = 1, .loaders = 1}));
  EXPECT_EQ(host::budget(made_cores(4, 4), {}), (host::ThreadBudget{.compute = 4, .loaders = 1}));
  EXPECT_EQ(host::budget(made_cores(64, 64), {}), (host::ThreadBudget{.compute = 60, .loaders = 4}));
}

TEST(Budget, UnboundRanksDivideTheNode) {
  EXPECT_EQ(host::budget(made_cores(2, 2), {.local_ranks = 2}).compute, 1);
  EXPECT_EQ(host::budget(made_cores(16, 16), {.local_ranks = 4}).compute, 4);
  EXPECT_EQ(host::budget(made_cores(7, 7), {.local_ranks = 2}).compute, 3);
}

TEST(Budget, MoreRanksThanCoresGetOneThreadEach) {
  EXPECT_EQ(host::budget(made_cores(2, 2), {.local_ranks = 4}).compute, 1);
}

TEST(Budget, BoundRanksKeepTheirMask) {
  EXPECT_EQ(host::budget(made_cores(4, 16), {.local_ranks = 4}).compute, 4);
  EXPECT_EQ(host::budget(made_cores(1, 16), {.local_ranks = 16}).compute, 1);
}

TEST(Budget, AMaskLargerThanTheShareIsDivided) {
  EXPECT_EQ(host::budget(made_cores(12, 16), {.local_ranks = 4}).compute, 3);
  // Two sockets of 4 CPUs in use, two ranks on each: only the masks themselves can tell.
  EXPECT_EQ(host::budget(made_cores(4, 16), {.local_ranks = 4, .sharing = 2}).compute, 2);
}

TEST(Budget, HardwareThreadsOfACoreCountOnce) {
  EXPECT_EQ(host::budget(made_cores(8, 8, 2), {.local_ranks = 2}).compute, 2);
  EXPECT_EQ(host::budget(made_cores(8, 8, 2), {.local_ranks = 1}).compute, 4);
}

TEST(Budget, QuotaIsDividedEvenBetweenBoundRanks) {
  host::Cores cores = made_cores(16, 64);
  cores.quota = 8.5;
  EXPECT_EQ(host::budget(cores, {.local_ranks = 4}).compute, 2);
  cores.quota = 0.5;
  EXPECT_EQ(host::budget(cores, {.local_ranks = 4}).compute, 1);
}

TEST(Budget, RequestsAreGranted) {
  EXPECT_EQ(host::budget(made_cores(4, 4), {.local_ranks = 2, .threads = 6, .loaders = 0}),
            (host::ThreadBudget{.compute = 6, .loaders = 0}));
  EXPECT_EQ(host::budget(made_cores(16, 16), {.loaders = 4}), (host::ThreadBudget{.compute = 12, .loaders = 4}));
  EXPECT_EQ(host::budget(made_cores(16, 16), {.loaders = 40}).compute, 1);
  EXPECT_EQ(host::budget(1, 3, 2), (host::ThreadBudget{.compute = 3, .loaders = 2}));
}

TEST(Budget, EnvironmentCountsWithoutARequest) {
  setenv("OMP_NUM_THREADS", "5,2", 1);
  EXPECT_EQ(host::budget(1, 0, 1).compute, 5);
  EXPECT_EQ(host::budget(1, 2, 1).compute, 2);
  setenv("OMP_NUM_THREADS", "", 1);
  EXPECT_EQ(host::environment_threads(), 0);
  unsetenv("OMP_NUM_THREADS");
}

TEST(Budget, AnEnvironmentThatCannotBeMeantIsRefused) {
  for (const char* wrong : {"0", "-3", "abc", "4x", "4097", "99999999999999999999", " "}) {
    setenv("OMP_NUM_THREADS", wrong, 1);
    EXPECT_THROW(host::environment_threads(), Error) << wrong;
  }
  unsetenv("OMP_NUM_THREADS");
}

TEST(Budget, ApplySetsOpenMp) {
  const int before = omp_get_max_threads();
  host::apply({.compute = 3});
  EXPECT_EQ(omp_get_max_threads(), 3);
  host::apply({.compute = before});
}

TEST(RanksSharing, CountsOverlappingMasks) {
  const std::vector<std::vector<int>> masks{{0, 1}, {0, 1}, {2, 3}, {1, 2}};
  EXPECT_EQ(host::ranks_sharing(masks, 0), 3);
  EXPECT_EQ(host::ranks_sharing(masks, 2), 2);
  EXPECT_EQ(host::ranks_sharing(masks, 3), 4);
}

TEST(CpuList, RangesAndSingles) {
  EXPECT_EQ(host::parse_cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(host::parse_cpu_list("5\n"), (std::vector<int>{5}));
  EXPECT_TRUE(host::parse_cpu_list("").empty());
}

TEST(Machine, IsDescribed) {
  const host::Cores cores = host::available_cores();
  EXPECT_GE(cores.cpus.size(), 1u);
  EXPECT_GE(cores.physical, 1);
  EXPECT_LE(cores.physical, static_cast<int>(cores.cpus.size()));
  EXPECT_GE(cores.quota, 0);
  const host::CpuInfo info = host::cpu_info();
  EXPECT_FALSE(info.model.empty());
  EXPECT_FALSE(info.instructions.empty());
  EXPECT_FALSE(info.blas.empty());
}

class Cgroup : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(root_); }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  double quota() { return host::cgroup_cpu_quota(root_ / "membership", root_ / "mount"); }
  std::size_t memory_left() { return host::cgroup_memory_left(root_ / "membership", root_ / "mount"); }
  fs::path root_ =
      fs::path(testing::TempDir()) / "lockstep_cgroup" / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Cgroup, VersionTwoTakesTheTightestAncestor) {
  write("membership", "0::/job/step");
  write("mount/job/step/cpu.max", "max 100000");
  write("mount/job/cpu.max", "250000 100000");
  write("mount/cpu.max", "800000 100000");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
}

TEST_F(Cgroup, VersionOne) {
  write("membership", "4:cpu,cpuacct:/docker/x\n3:cpuset:/other");
  write("mount/cpu/cpu.cfs_quota_us", "400000");
  write("mount/cpu/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(quota(), 4);
}

TEST_F(Cgroup, NoLimitIsZero) {
  EXPECT_EQ(quota(), 0);
  write("membership", "4:cpu:/\n0::/gone");
  write("mount/cpu/cpu.cfs_quota_us", "-1");
  write("mount/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 0);
}

TEST_F(Cgroup, MemoryIsLeftUpToTheTightestLimit) {
  write("membership", "0::/job/step");
  write("mount/job/step/memory.max", "max");
  write("mount/job/step/memory.current", "10");
  write("mount/job/memory.max", "1000");
  write("mount/job/memory.current", "900");
  write("mount/job/memory.stat", "anon 100\ninactive_file 300");
  EXPECT_EQ(memory_left(), 400u) << "pages of files can be dropped";
  write("mount/memory.max", "50");
  write("mount/memory.current", "60");
  EXPECT_EQ(memory_left(), 0u);
}

TEST_F(Cgroup, MemoryOfVersionOneAndWithoutALimit) {
  EXPECT_EQ(memory_left(), std::numeric_limits<std::size_t>::max());
  write("membership", "4:cpu:/x\n5:memory:/x");
  write("mount/memory/x/memory.limit_in_bytes", "1000");
  write("mount/memory/x/memory.usage_in_bytes", "100");
  EXPECT_EQ(memory_left(), 900u);
}

TEST(Blas, NamesItselfAndTakesTheThreadsOfTheBudget) {
  const host::BlasFacts before = host::blas_facts();
  EXPECT_NE(before.name, "");
  EXPECT_NE(before.name, "linked statically") << "no test links a BLAS statically";
  EXPECT_EQ(before.name.starts_with("OpenBLAS "), dlsym(RTLD_DEFAULT, "openblas_get_config") != nullptr) << before.name;
  EXPECT_EQ(host::cpu_info().blas, before.name);
  host::set_blas_threads(2);
  if (before.own_pool > 0) {
    EXPECT_EQ(host::blas_facts().own_pool, 2);
  }
  host::set_blas_threads(1);
  if (before.own_pool > 0) {
    EXPECT_EQ(host::blas_facts().own_pool, 1);
  }
  EXPECT_EQ(host::blas_facts().name, before.name);
}

}  // namespace
}  // namespace lockstep
