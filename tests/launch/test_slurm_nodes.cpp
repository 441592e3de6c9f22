#include "lockstep/launch/slurm_nodes.h"

#include <gtest/gtest.h>

#include "tests/messages.h"

namespace lockstep::launch {
namespace {

using Names = std::vector<std::string>;

TEST(SlurmNodes, AreExpandedAsScontrolDoes) {
  EXPECT_EQ(expand_node_list("n[001-003,7],m1", "list"), (Names{"n001", "n002", "n003", "n7", "m1"}));
  EXPECT_EQ(expand_node_list("r[1-2]n[9-10]", "list"), (Names{"r1n9", "r1n10", "r2n9", "r2n10"}));
  EXPECT_EQ(expand_node_list("node1-ib", "list"), (Names{"node1-ib"}));
  EXPECT_EQ(expand_node_list("a[08-11]-x", "list"), (Names{"a08-x", "a09-x", "a10-x", "a11-x"}));
  EXPECT_EQ(expand_task_counts("8(x2),4", "counts"), (std::vector<std::int64_t>{8, 8, 4}));
}

TEST(SlurmNodes, WhatIsWrongIsSaidWithItsColumn) {
  const std::vector<std::pair<std::string, std::string>> lists{
      {"n[1-3", "list, column 6: expected ']' here, as in n[001-003,7]"},
      {"n[]", "list, column 3: expected a number of at most 9 digits here, as in n[001-003,7]"},
      {"n[3-1]", "list, column 3: '3-1', expected a range that ends above its beginning, with fewer than 65536 hosts"},
      {"n[1-2]]", "list, column 7: ']', expected a comma or the end of the list"},
      {"a,,b", "list, column 3: '' is no name of a host, expected letters, digits and . _ : -, perhaps after USER@"},
      {"a;b", "list, column 1: 'a;b' is no name of a host, expected letters, digits and . _ : -, perhaps after USER@"},
      {"a[1-300]b[1-300]", "list, column 16: more than 65536 hosts, expected fewer"}};
  for (const auto& [text, expected] : lists)
    EXPECT_EQ(error_of([text = text] { expand_node_list(text, "list"); }), "[slurm] " + expected) << text;
  for (const char* counts : {"", "8(x", "8(x2", "(x2)", "8(x0)", "0", "8,", "8 ", "8(x70000)", "-1"})
    EXPECT_NE(error_of([&] { expand_task_counts(counts, "counts"); }).find("[slurm] counts, column"), std::string::npos)
        << counts;
}

TEST(SlurmNodes, OfAJobsVariables) {
  const auto hosts = [](const std::string& text) { return slurm_hosts(Settings::of_text(text, "job")); };
  const HostList list = hosts("SLURM_JOB_NODELIST=n[1-2],m\nSLURM_TASKS_PER_NODE='8(x2),4'\nSLURM_NTASKS=20\n");
  const std::vector<Host> expected{{.name = "n1", .slots = 8, .origin = "job:1: SLURM_JOB_NODELIST"},
                                   {.name = "n2", .slots = 8, .origin = "job:1: SLURM_JOB_NODELIST"},
                                   {.name = "m", .slots = 4, .origin = "job:1: SLURM_JOB_NODELIST"}};
  EXPECT_EQ(list.hosts, expected);
  EXPECT_EQ(to_node_list(list), "n[1-2],m");
  EXPECT_EQ(to_task_counts(list), "8(x2),4");
  EXPECT_EQ(hosts("SLURM_JOB_NODELIST=a,b\nSLURM_NTASKS_PER_NODE=3\n").slots(), 6);
  EXPECT_FALSE(hosts("SLURM_JOB_NODELIST=a,b\n").all_slots_said());
  // A step on a part of the job's nodes.
  EXPECT_EQ(hosts("SLURM_JOB_NODELIST=a,b\nSLURM_TASKS_PER_NODE=8(x2)\nSLURM_STEP_NODELIST=b\n"
                  "SLURM_STEP_TASKS_PER_NODE=2\n")
                .hosts[0]
                .slots,
            2);
}

TEST(SlurmNodes, CountsThatDisagreeAreNamed) {
  const auto error = [](const std::string& text) {
    return error_of([&] { slurm_hosts(Settings::of_text(text, "job")); });
  };
  EXPECT_EQ(error("SLURM_JOB_NODELIST=a,b\nSLURM_TASKS_PER_NODE=8(x3)\n"),
            "[slurm] job:2: SLURM_TASKS_PER_NODE is '8(x3)', counts of 3 nodes, but job:1: SLURM_JOB_NODELIST names 2 "
            "nodes");
  EXPECT_EQ(error("SLURM_JOB_NODELIST=a,b\nSLURM_TASKS_PER_NODE=8(x2)\nSLURM_NTASKS=15\n"),
            "[slurm] job:2: SLURM_TASKS_PER_NODE counts 16 ranks, but SLURM_NTASKS is 15");
  EXPECT_EQ(error("SLURM_JOB_NODELIST=a[1-2],a2\n"),
            "[slurm] job:1: SLURM_JOB_NODELIST: a2 is named twice, expected once");
  EXPECT_EQ(error("A=1\n"), "[slurm] SLURM_JOB_NODELIST is not set, expected it as inside salloc, sbatch or srun");
}

}  // namespace
}  // namespace lockstep::launch
