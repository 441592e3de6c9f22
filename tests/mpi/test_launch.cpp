// Launches that went wrong, told from their variables; and which ranks share a node, told from their identities.
#include <gtest/gtest.h>

#include <map>

#include "lockstep/comm/launch.h"
#include "lockstep/comm/topology.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using Variables = std::map<std::string, std::string>;

std::string problem(int world_size, const std::string& library, const Variables& variables) {
  return comm::launch_problem({.world_size = world_size,
                               .library = library,
                               .variable =
                                   [&](const std::string& name) {
                                     const auto found = variables.find(name);
                                     return found == variables.end() ? std::nullopt : std::optional(found->second);
                                   }})
      .value_or("");
}

constexpr const char* kOpenMpi = "Open MPI v4.1.4, package: Debian OpenMPI";
constexpr const char* kMpich = "MPICH Version: 4.0.2";

TEST(Launch, SoundOnesPass) {
  EXPECT_EQ(problem(1, kOpenMpi, {}), "");
  EXPECT_EQ(problem(4, kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}}), "");
  EXPECT_EQ(problem(1, kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "1"}}), "");
  EXPECT_EQ(problem(4, kOpenMpi, {{"SLURM_STEP_NUM_TASKS", "4"}}), "");
  // A batch script that starts one process: the allocation has tasks, but there is no step.
  EXPECT_EQ(problem(1, kOpenMpi, {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}), "");
  // mpirun -n 1 in a job whose mpirun was itself started as a step.
  EXPECT_EQ(problem(1, kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), "");
  EXPECT_EQ(problem(1, kOpenMpi, {{"PMI_SIZE", "many"}}), "");
}

TEST(Launch, SrunWithoutPmixSaysWhatToDo) {
  const std::string text = problem(1, kOpenMpi, {{"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_NE(text.find("srun started 4 tasks"), std::string::npos) << text;
  EXPECT_NE(text.find("srun --mpi=pmix"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_NE(problem(1, kOpenMpi, {{"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_SIZE", "4"}}).find("--mpi=pmix"),
            std::string::npos);
  EXPECT_NE(problem(1, kMpich, {{"SLURM_STEP_NUM_TASKS", "4"}}).find("--mpi=pmi2"), std::string::npos);
}

TEST(Launch, AnotherLibrarysMpirunIsNamed) {
  const std::string hydra = problem(1, kOpenMpi, {{"PMI_SIZE", "2"}});
  EXPECT_NE(hydra.find("MPICH"), std::string::npos) << hydra;
  EXPECT_NE(hydra.find("linked with Open MPI v4.1.4 "), std::string::npos) << hydra;
  const std::string open = problem(1, kMpich, {{"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_NE(open.find("Open MPI's mpirun started 2"), std::string::npos) << open;
  EXPECT_NE(problem(1, kOpenMpi, {{"FLUX_JOB_SIZE", "3"}}).find("FLUX_JOB_SIZE=3"), std::string::npos);
}

TEST(Launch, SingletonsCanBeMeant) {
  EXPECT_EQ(problem(1, kOpenMpi, {{"SLURM_STEP_NUM_TASKS", "4"}, {"LOCKSTEP_ALLOW_SINGLETONS", "1"}}), "");
}

int local_ranks(const Variables& variables) {
  return comm::launched_local_ranks([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Launch, LocalRanksAreKnownBeforeMpiStarts) {
  EXPECT_EQ(local_ranks({}), 1);
  EXPECT_EQ(local_ranks({{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}}), 4);
  EXPECT_EQ(local_ranks({{"MPI_LOCALNRANKS", "3"}}), 3);
  EXPECT_EQ(local_ranks({{"MPI_LOCALNRANKS", "many"}}), 1);
  const std::string slurm = "3(x2),1";
  EXPECT_EQ(local_ranks({{"SLURM_STEP_TASKS_PER_NODE", slurm}}), 3);
  EXPECT_EQ(local_ranks({{"SLURM_STEP_TASKS_PER_NODE", slurm}, {"SLURM_NODEID", "1"}}), 3);
  EXPECT_EQ(local_ranks({{"SLURM_STEP_TASKS_PER_NODE", slurm}, {"SLURM_NODEID", "2"}}), 1);
  EXPECT_EQ(local_ranks({{"SLURM_STEP_TASKS_PER_NODE", slurm}, {"SLURM_NODEID", "5"}}), 1);
}

TEST(Topology, NodesAreNumberedByTheirLowestRank) {
  const std::vector<comm::NodeIdentity> ranks{{"b", "B"}, {"a", "A"}, {"b", "B"}, {"a", "A"}, {"a", "A"}};
  const comm::Topology topology(ranks);
  EXPECT_EQ(topology.node_count(), 2);
  const int nodes[] = {0, 1, 0, 1, 1}, locals[] = {0, 0, 1, 1, 2};
  for (int r = 0; r < 5; ++r) {
    EXPECT_EQ(topology.node_of(r), nodes[r]);
    EXPECT_EQ(topology.local_rank(r), locals[r]);
    EXPECT_EQ(topology.local_size(r), nodes[r] == 0 ? 2 : 3);
    EXPECT_EQ(topology.host(r), nodes[r] == 0 ? "b" : "a");
  }
  const std::vector<int> some{3, 0};
  const comm::Topology part = topology.restricted_to(some);
  EXPECT_EQ(part.node_of(0), 0);
  EXPECT_EQ(part.node_of(1), 1);
  EXPECT_EQ(part.local_size(0), 1);
  EXPECT_EQ(part.host(0), "a");
}

TEST(Topology, OneHostNameOnTwoMachinesIsTwoNodes) {
  const std::vector<comm::NodeIdentity> ranks{{"node", "boot 1"}, {"node", "boot 2"}, {"node", "boot 1"}};
  const comm::Topology topology(ranks);
  EXPECT_EQ(topology.node_count(), 2);
  EXPECT_EQ(topology.local_size(0), 2);
}

TEST(Topology, ThisProcessHasOneIdentity) {
  const auto a = comm::detect_identity(""), b = comm::detect_identity(""), c = comm::detect_identity("numa0");
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.host, c.host);
  EXPECT_NE(a.key, c.key);
}

}  // namespace
}  // namespace lockstep::test
