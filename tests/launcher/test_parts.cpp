// The parts of `lockstep launch` that need no network: nodes that come, mpirun's command, a rank's variables.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "lockstep/host/threads.h"
#include "tests/launcher/helpers.h"
#include "tools/launcher/hydra_line.h"
#include "tools/launcher/job_ports.h"
#include "tools/launcher/mpirun_line.h"
#include "tools/launcher/node.h"
#include "tools/launcher/outer_job.h"
#include "tools/launcher/rank.h"
#include "tools/launcher/roster.h"

namespace lockstep::launcher {
namespace {

Join node(int number, const std::string& host, int nodes = 3) {
  return {.nodes = nodes,
          .node = number,
          .ranks = 8,
          .host = host,
          .version = "1",
          .mpi = "Open MPI 4",
          .words = {"./train", "--lr", "1"},
          .program = "aa",
          .network = "10.1.0.0/16"};
}

TEST(Roster, NamesWhoIsThereAndWhoIsMissing) {
  Roster roster(node(0, "a"));
  EXPECT_EQ(roster.missing(), "nodes 1, 2");
  EXPECT_EQ(roster.add(node(2, "c"), "10.1.0.3:5"), "");
  EXPECT_EQ(roster.missing(), "node 1");
  EXPECT_EQ(roster.present(), "node 0 (a), node 2 (c, 10.1.0.3:5)");
  EXPECT_FALSE(roster.complete());
  EXPECT_EQ(roster.add(node(1, "b"), "10.1.0.2:5"), "");
  EXPECT_TRUE(roster.complete());
  EXPECT_EQ(roster.ranks(), 24);
  EXPECT_EQ(roster.network(), "10.1.0.0/16");
  EXPECT_TRUE(roster.problems(false).empty());
  roster.remove(2);
  EXPECT_EQ(roster.missing(), "node 2");
}

TEST(Roster, RefusesWhoCannotBeInTheJob) {
  Roster roster(node(0, "a"));
  EXPECT_EQ(roster.add(node(1, "b"), "p"), "");
  EXPECT_EQ(roster.add(node(1, "c"), "q"), "--node-rank 1 is there twice: node 1 (b, p) and c (q)");
  EXPECT_EQ(roster.add(node(0, "c"), "q"), "--node-rank 0 is there twice: node 0 (a) and c (q)");
  EXPECT_EQ(roster.add(node(2, "c", 4), "q"), "node 2 (c, q) was started with --nnodes 4, node 0 with 3");
  EXPECT_EQ(roster.add(node(3, "c"), "q"), "c (q) was started with --node-rank 3, expected 0 to 2");
  EXPECT_NE(roster.add(node(2, "b"), "q").find("two nodes have the host name 'b'"), std::string::npos);
  EXPECT_EQ(roster.missing(), "node 2");
}

TEST(Roster, NamesDifferences) {
  Roster roster(node(0, "a"));
  Join argument = node(1, "b"), program = node(2, "c");
  argument.words[2] = "2";
  program.program = "bb";
  ASSERT_EQ(roster.add(argument, "p"), "");
  ASSERT_EQ(roster.add(program, "q"), "");
  const auto found = roster.problems(false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "node 1 (b, p): argument 2 is '2', on node 0 '1'");
  EXPECT_EQ(found[1], "node 2 (c, q): its './train' is another file than node 0's (SHA-256 bb and aa)");
  EXPECT_TRUE(roster.problems(true).empty());
}

TEST(Roster, AnotherMpiOrNoProgramIsAProblemInAnyCase) {
  Roster roster(node(0, "a"));
  Join mpi = node(1, "b"), none = node(2, "c");
  mpi.mpi = "Open MPI 5";
  none.problem = "no program './train'";
  ASSERT_EQ(roster.add(mpi, "p"), "");
  ASSERT_EQ(roster.add(none, "q"), "");
  for (const bool differences : {false, true}) {
    const auto found = roster.problems(differences);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0], "node 1 (b, p): its MPI is 'Open MPI 5', on node 0 'Open MPI 4'");
    EXPECT_EQ(found[1], "node 2 (c, q): no program './train'");
  }
}

TEST(Roster, TheResumeThatASupervisorAddsIsNoDifference) {
  Join first = node(0, "a", 2);
  first.words = {"./train", "--lr", "1", "--resume", "auto"};
  Roster roster(first);
  ASSERT_EQ(roster.add(node(1, "b", 2), "p"), "");
  EXPECT_TRUE(roster.problems(false).empty());
}

TEST(Roster, SeveralNetworksAreNone) {
  Roster roster(node(0, "a"));
  Join other = node(2, "c");
  other.network = "10.2.0.0/16";
  ASSERT_EQ(roster.add(node(1, "b"), "p"), "");
  ASSERT_EQ(roster.add(other, "q"), "");
  EXPECT_EQ(roster.network(), "");
}

std::string line(const MpirunLine& line, const std::map<std::string, std::string>& environment = {}) {
  return fmt::format("{}", fmt::join(mpirun_words(line,
                                                  [&](const std::string& name) {
                                                    const auto found = environment.find(name);
                                                    return found == environment.end() ? std::nullopt
                                                                                      : std::optional(found->second);
                                                  }),
                                     " "));
}

TEST(MpirunLine, OfOneNode) {
  EXPECT_EQ(line({.hosts = "a:8", .ranks = 8, .program = {"./train", "-x"}}),
            "mpirun --host a:8 -n 8 --map-by slot --bind-to none lockstep launch-rank ./train -x");
}

TEST(MpirunLine, OfSeveralNodes) {
  const MpirunLine job{.hosts = "a:8,b:8",
                       .ranks = 16,
                       .agents = 2,
                       .network = "10.1.0.0/16",
                       .extra = {"--tag-output"},
                       .program = {"./train"}};
  EXPECT_EQ(line(job),
            "mpirun --mca plm ^slurm,tm,lsf,alps,pals,isolated --mca plm_rsh_agent lockstep launch-agent "
            "--mca plm_rsh_args host --mca plm_rsh_no_tree_spawn 1 --leave-session-attached "
            "--mca plm_rsh_num_concurrent 128 "
            "--mca ras ^slurm --mca oob_tcp_if_include 10.1.0.0/16 --mca btl_tcp_if_include 10.1.0.0/16 "
            "--host a:8,b:8 -n 16 --map-by slot --bind-to none --tag-output lockstep launch-rank ./train");
}

TEST(MpirunLine, OfHydra) {
  constexpr auto hydra = launch::MpirunKind::Hydra;
  EXPECT_EQ(
      line({.kind = hydra, .here = true, .hosts = "a:8", .ranks = 8, .extra = {"-prepend-rank"}, .program = {"p"}}),
      "mpirun -launcher fork -rmk user -n 8 -prepend-rank lockstep launch-rank p");
  EXPECT_EQ(line({.kind = hydra, .hosts = "a:8,b:4", .variables = {{"MASTER_PORT", "5"}}, .program = {"p"}}),
            "mpirun -launcher ssh -hosts a:8,b:4 -n 12 -genv LOCKSTEP_LAUNCH_SLOTS 8,4 -genv MASTER_PORT 5 "
            "lockstep launch-rank p");
  EXPECT_EQ(hydra_variables({.ssh_port = 22222}).at("HYDRA_LAUNCHER_EXTRA_ARGS"), "-p 22222");
  const auto problem = [](const MpirunLine& job) { return error_of([&] { hydra_words(job); }); };
  EXPECT_NE(problem({.hosts = "a:1,b:1", .agents = 2}).find("expected --host or --hostfile"), std::string::npos);
  EXPECT_NE(problem({.hosts = "me@a:1"}).find("takes no user"), std::string::npos);
  EXPECT_NE(problem({.hosts = "a:*"}).find("expected slots for all hosts"), std::string::npos);
}

TEST(MpirunLine, HasItsPorts) {
  const MpirunLine job{.hosts = "a:1",
                       .ports = launch::plan_ports({60000, 60003}, {.ranks_per_host = 1, .launch = true}),
                       .program = {"p"}};
  EXPECT_EQ(line(job),
            "mpirun --mca oob_tcp_dynamic_ipv4_ports 60000 --mca oob_tcp_dynamic_ipv6_ports 60001 "
            "--mca btl_tcp_port_min_v4 60003 --mca btl_tcp_port_range_v4 1 --mca btl_tcp_port_min_v6 60003 "
            "--mca btl_tcp_port_range_v6 1 --host a:1 --map-by slot --bind-to none lockstep launch-rank p");
  EXPECT_NE(line(job, {{"OMPI_MCA_btl_tcp_port_min_v4", "5000"}}).find("--mca btl_tcp_port_min_v4 5000 "),
            std::string::npos)
      << "what the user sets stays";
}

TEST(MpirunLine, WhatTheUserSaysStays) {
  const MpirunLine job{.hosts = "a:1,b:1",
                       .ranks = 2,
                       .agents = 2,
                       .network = "10.1.0.0/16",
                       .extra = {"--bind-to", "core", "--mca", "btl_tcp_if_exclude", "lo"},
                       .program = {"p"}};
  const std::string words =
      line(job, {{"OMPI_MCA_oob_tcp_if_include", "eth1"}, {"OMPI_MCA_rmaps_base_mapping_policy", "node"}});
  EXPECT_NE(words.find("--mca oob_tcp_if_include eth1 --host "), std::string::npos) << words;
  EXPECT_EQ(words.find("btl_tcp_if_include"), std::string::npos) << words;
  EXPECT_EQ(words.find("--bind-to none"), std::string::npos) << words;
  EXPECT_NE(words.find("--map-by node"), std::string::npos) << words;
  EXPECT_EQ(line({.network = "10.1.0.0/16", .program = {"p"}}, {{"LOCKSTEP_INTERFACE", "eth0"}}).find("btl_tcp"),
            std::string::npos);
}

TEST(MpirunLine, BySsh) {
  MpirunLine job{.hosts = "a:8,b:8",
                 .ssh_port = 12345,
                 .own_name = "/opt/lockstep",
                 .variables = {{"MASTER_ADDR", "a"}},
                 .program = {"p"}};
  EXPECT_EQ(line(job),
            "mpirun --host a:8,b:8 --map-by slot --bind-to none -x MASTER_ADDR=a --mca plm_rsh_args -p 12345 "
            "/opt/lockstep launch-rank p");
  job.extra = {"--mca", "plm_rsh_args", "-F config"};
  EXPECT_NE(line(job).find(" --mca plm_rsh_args -F config -p 12345 /opt/"), std::string::npos) << line(job);
  job.extra = {};
  const std::string words = line(job, {{"OMPI_MCA_plm_rsh_args", "-F config"}});
  EXPECT_NE(words.find(" --mca plm_rsh_args -F config -p 12345 /opt/"), std::string::npos) << words;
}

TEST(JobPorts, TheMeetingPortIsTheThird) {
  LaunchOptions options{.ranks_per_node = "8"};
  EXPECT_EQ(meeting_port(options), 29500);
  options.meeting.port = 1234;
  EXPECT_EQ(meeting_port(options), 1234);
  options.mpirun.ports = "60000-60010";
  const std::string message = error_of([&] { meeting_port(options); });
  EXPECT_NE(message.find("is 1234, and in --ports 60000-60010 the port of node 0's launcher is 60002"),
            std::string::npos)
      << message;
  for (const int said : {0, 60002}) {
    options.meeting.port = said;
    EXPECT_EQ(meeting_port(options), 60002);
  }
}

TEST(JobPorts, ARangeThatIsTooSmallIsRefused) {
  LaunchOptions options{.ranks_per_node = "8"};
  EXPECT_FALSE(plan_job_ports(options, {.ranks_per_host = 8}));
  options.mpirun.ports = "60000-60009";
  EXPECT_EQ(plan_job_ports(options, {.ranks_per_host = 8})->ranks.str(), "60002-60009");
  const std::string message = error_of([&] { meeting_port(options); });
  EXPECT_NE(message.find("60000-60009 are 10 ports, but a host with 8 ranks needs 11"), std::string::npos) << message;
  options.mpirun.ports = "60000";
  EXPECT_NE(error_of([&] { plan_job_ports(options, {}); }).find("expected a range FIRST-LAST"), std::string::npos);
}

TEST(JobPorts, ThePortForProgramsIsNoneOfThem) {
  const auto all = launch::plan_ports({1024, 65535}, {.ranks_per_host = 1});
  EXPECT_NE(error_of([&] { port_for_programs(all); }).find("no free port outside of --ports"), std::string::npos);
  EXPECT_GT(port_for_programs({}), 0);
}

TEST(JobPorts, BySshTheHostsSayTheirRanks) {
  EXPECT_EQ(most_ranks_by_ssh({.hosts = "a:2,b:8,c:4"}), 8);
  const std::string message = error_of([] { most_ranks_by_ssh({.hosts = "a:2,b:*"}); });
  EXPECT_NE(message.find("--ports needs the number of ranks of each host"), std::string::npos) << message;
}

TEST(Node, AutoIsARankPerCore) {
  const host::Cores cores = host::available_cores();
  const int ranks = ranks_of_node("auto");
  EXPECT_GE(ranks, 1);
  EXPECT_LE(ranks, cores.physical);
  if (cores.quota <= 0) {
    EXPECT_EQ(ranks, cores.physical);
  }
  EXPECT_EQ(ranks_of_node("8"), 8);
  for (const char* wrong : {"", "0", "-1", "8x", "all", "100000000"}) {
    const std::string message = error_of([&] { ranks_of_node(wrong); });
    EXPECT_NE(message.find(fmt::format("--nproc-per-node is '{}'", wrong)), std::string::npos) << message;
  }
}

TEST(Node, ItsProgramIsFoundAndHashed) {
  LaunchOptions options{.words = {"/bin/sh", "-c", "true"}};
  EXPECT_EQ(describe_node(options, 1, 2).program.size(), 64U);
  EXPECT_EQ(describe_node(options, 0, 1).program, "") << "there is no other node to compare with";
  options.words = {"sh"};
  EXPECT_EQ(describe_node(options, 0, 1).problem, "");
  options.words = {"./no such program"};
  EXPECT_NE(describe_node(options, 0, 1).problem.find("no program './no such program' (working directory /"),
            std::string::npos);
  options.words = {"no such program"};
  EXPECT_NE(describe_node(options, 0, 1).problem.find("no program 'no such program' in PATH"), std::string::npos);
}

TEST(SplitWords, AsAShellWould) {
  using Words = std::vector<std::string>;
  const auto split = [](const std::string& text) { return launch::split_words(text, "--mpi-args"); };
  EXPECT_EQ(split("  --mca a 'b c'\t\"d'e\" f\\ g ''"), (Words{"--mca", "a", "b c", "d'e", "f g", ""}));
  EXPECT_EQ(split(""), Words{});
  EXPECT_NE(error_of([&] { split("a 'b"); }).find("--mpi-args has an open quote: a 'b"), std::string::npos);
}

TEST(Rank, HasTorchrunsVariables) {
  const Variables set = rank_variables({{"OMPI_COMM_WORLD_RANK", "11"},
                                        {"OMPI_COMM_WORLD_SIZE", "16"},
                                        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                                        {"LOCKSTEP_LAUNCH_NODE", "1"},
                                        {"LOCKSTEP_LAUNCH_BIN", "/x"},
                                        {"PATH", "/x:/bin:/x"}},
                                       8);
  EXPECT_EQ(set, (Variables{{"RANK", "11"},
                            {"WORLD_SIZE", "16"},
                            {"LOCAL_RANK", "3"},
                            {"LOCAL_WORLD_SIZE", "8"},
                            {"NODE_RANK", "1"},
                            {"GROUP_RANK", "1"},
                            {"PATH", "/bin:/x"}}));
}

TEST(Rank, HasThemUnderHydra) {
  const Variables set = rank_variables({{"PMI_RANK", "9"},
                                        {"PMI_SIZE", "12"},
                                        {"MPI_LOCALRANKID", "1"},
                                        {"MPI_LOCALNRANKS", "4"},
                                        {"LOCKSTEP_LAUNCH_SLOTS", "8,4"}},
                                       8);
  EXPECT_EQ(set, (Variables{{"RANK", "9"},
                            {"WORLD_SIZE", "12"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"NODE_RANK", "1"},
                            {"GROUP_RANK", "1"},
                            {"PATH", ""}}));
}

TEST(Rank, WithoutALaunchersNumberTheDaemonsCounts) {
  const Variables set = rank_variables(
      {{"OMPI_MCA_orte_local_daemon_uri", "12.3;tcp://10.0.0.1:5"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, 2);
  EXPECT_EQ(set.at("NODE_RANK"), "3");
  EXPECT_EQ(set.at("OMPI_MCA_mpi_yield_when_idle"), "1") << "four ranks on two cores";
  const Variables of_5 = rank_variables({{"PMIX_SERVER_URI41", "prterun-a.b-15@0.12;tcp4://10.0.0.1:5"}}, 2);
  EXPECT_EQ(of_5.at("NODE_RANK"), "12");
}

TEST(OuterJob, ItsVariablesAreToldFromTheUsers) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid",
                           "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_pmix", "OMPI_UNIVERSE_SIZE", "PMI_RANK",
                           "MPI_LOCALRANKID", "HYDI_CONTROL_FD", "OMPI_MCA_initial_wdir", "PRTE_LAUNCHED"})
    EXPECT_TRUE(is_of_outer_job(name)) << name;
  for (const char* name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include",
        "OMPI_MCA_orte_tmpdir_base", "OMPI_LOCKSTEP_JOB", "PATH", "OMP_NUM_THREADS", "OMPI_MCA_mpi_yield_when_idle",
        "PRTE_MCA_plm_ssh_args", "PRTE_ALLOW_RUN_AS_ROOT"})
    EXPECT_FALSE(is_of_outer_job(name)) << name;
}

TEST(OuterJob, ItsSizeIsItsLaunchers) {
  const auto with = [](const std::string& name, const std::string& text) {
    return outer_size([=](const std::string& asked) { return asked == name ? std::optional(text) : std::nullopt; });
  };
  EXPECT_EQ(with("OMPI_COMM_WORLD_SIZE", "4"), 4);
  EXPECT_EQ(with("SLURM_STEP_NUM_TASKS", "2"), 2);
  EXPECT_EQ(with("SLURM_NTASKS", "2"), 0) << "a batch script is no step";
}

}  // namespace
}  // namespace lockstep::launcher
