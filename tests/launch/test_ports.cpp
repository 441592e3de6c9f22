#include "lockstep/launch/ports.h"

#include <gtest/gtest.h>

#include "lockstep/launch/host_option.h"
#include "lockstep/launch/job_command.h"
#include "tests/messages.h"

namespace lockstep::launch {
namespace {

TEST(Ports, ARangeIsRead) {
  const PortRange range = parse_port_range("60000-60015");
  EXPECT_EQ(range.count(), 16);
  EXPECT_EQ(range.str(), "60000-60015");
  for (const char* wrong :
       {"", "60000", "60000-", "-60015", "60015-60000", "60000-65536", "80-90", "a-b", "1024-2048x"})
    EXPECT_NE(error_of([&] { parse_port_range(wrong); }).find("expected a range FIRST-LAST"), std::string::npos)
        << wrong;
}

TEST(Ports, HowManyAreNeeded) {
  EXPECT_EQ(ports_needed({.ranks_per_host = 8}), 10);
  EXPECT_EQ(ports_needed({.ranks_per_host = 8}, true), 18);
  EXPECT_EQ(ports_needed({.ranks_per_host = 8, .launch = true}), 11);
}

TEST(Ports, AreSharedOut) {
  const PortPlan plan = plan_ports({60000, 60015}, {.ranks_per_host = 8, .launch = true});
  EXPECT_EQ(plan.daemon_v4, 60000);
  EXPECT_EQ(plan.daemon_v6, 60001);
  EXPECT_EQ(plan.launch, 60002);
  EXPECT_EQ(plan.ranks.str(), "60003-60015");
  const auto parameters = port_parameters(plan_ports({60000, 60009}, {.ranks_per_host = 8}));
  EXPECT_EQ(parameters[0], std::pair(std::string("oob_tcp_dynamic_ipv4_ports"), std::string("60000")));
  EXPECT_EQ(parameters[2], std::pair(std::string("btl_tcp_port_min_v4"), std::string("60002")));
  EXPECT_EQ(parameters[3], std::pair(std::string("btl_tcp_port_range_v4"), std::string("8")));
  EXPECT_EQ(
      error_of([] {
        plan_ports({60000, 60008}, {.ranks_per_host = 8});
      }),
      "[ports] 60000-60008 are 9 ports, but a host with 8 ranks needs 10: 2 for the daemon, 8 for the ranks; expected "
      "at least 60000-60009, better 60000-60017, so that a job can start within 60 s of the last one");
}

TEST(Ports, AdministratorsAreToldTheLines) {
  EXPECT_EQ(port_commands({60000, 60015}, "10.1.0.0/16"),
            (std::vector<std::string>{
                "sysctl -w net.ipv4.ip_local_reserved_ports=60000-60015",
                "ufw allow proto tcp from 10.1.0.0/16 to any port 60000:60015",
                "firewall-cmd --permanent --add-rich-rule='rule family=ipv4 source address=10.1.0.0/16 port "
                "port=60000-60015 protocol=tcp accept' && firewall-cmd --reload",
                "nft insert rule inet filter input ip saddr 10.1.0.0/16 tcp dport 60000-60015 accept"}));
  EXPECT_EQ(port_commands({60000, 60015}, "")[2],
            "firewall-cmd --permanent --add-port=60000-60015/tcp && firewall-cmd --reload");
  EXPECT_EQ(port_commands({60000, 60015}, "")[3], "nft insert rule inet filter input tcp dport 60000-60015 accept");
  EXPECT_EQ(opening_command(FirewallTool::Nftables, {60000, 60015}, "fd00::/64", "ip6 t c"),
            "nft insert rule ip6 t c ip6 saddr fd00::/64 tcp dport 60000-60015 accept");
}

TEST(JobCommand, IsWhole) {
  JobCommand command{
      .network = "10.1.0.0/16", .ssh_port = 12345, .threads = 4, .root = true, .program = {"./a b", "--x"}};
  EXPECT_EQ(
      shell_line(mpirun_words(parse_host_list("a:8,b:8"), command)),
      "mpirun --allow-run-as-root -n 16 -H a:8,b:8 --map-by slot --bind-to none --mca plm_rsh_args '-p 12345' --mca "
      "oob_tcp_if_include 10.1.0.0/16 --mca btl_tcp_if_include 10.1.0.0/16 --mca oob_tcp_keepalive_time 5 --mca "
      "oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 6 -x OMP_NUM_THREADS=4 './a b' --x");
  EXPECT_EQ(shell_line(mpirun_words(parse_host_list("a:2"), {.hostfile = "hosts", .program = {"p"}})),
            "mpirun -n 2 --hostfile hosts --map-by slot --bind-to none p");
}

TEST(JobCommand, WhatTheUserHasSetStays) {
  JobCommand command{.network = "eth0",
                     .ssh_port = 2222,
                     .ssh_arguments = "-F config",
                     .own = {"--mca", "btl_tcp_if_exclude", "docker0", "--bind-to", "core"},
                     .variable = [](const std::string& name) {
                       return name == "OMPI_MCA_plm_rsh_args" ? std::optional<std::string>("-i key") : std::nullopt;
                     }};
  command.program = {"p"};
  const std::string line = shell_line(mpirun_words(parse_host_list("a:1,b:1"), command));
  EXPECT_NE(line.find("--mca plm_rsh_args '-i key -p 2222 -F config'"), std::string::npos) << line;
  EXPECT_EQ(line.find("btl_tcp_if_include"), std::string::npos) << line;
  EXPECT_EQ(line.find("--bind-to none"), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with(" --mca btl_tcp_if_exclude docker0 --bind-to core p")) << line;
}

TEST(JobCommand, WhatTheUserHasSetForOpenMpi5Stays) {
  JobCommand command{.network = "eth0",
                     .ssh_port = 2222,
                     .own = {"--prtemca", "prte_if_exclude", "docker0"},
                     .variable = [](const std::string& name) {
                       if (name == "PRTE_MCA_hwloc_default_binding_policy") return std::optional<std::string>("core");
                       return name == "PRTE_MCA_plm_ssh_args" ? std::optional<std::string>("-i key") : std::nullopt;
                     }};
  command.program = {"p"};
  EXPECT_EQ(shell_line(mpirun_words(parse_host_list("a:1,b:1"), command)),
            "mpirun -n 2 -H a:1,b:1 --map-by slot --bind-to core --mca plm_rsh_args '-i key -p 2222' --mca "
            "btl_tcp_if_include eth0 --mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 1 "
            "--mca oob_tcp_keepalive_probes 6 --prtemca prte_if_exclude docker0 p");
  command.own = {"--prtemca", "plm_ssh_args", "-F config"};
  const std::string line = shell_line(mpirun_words(parse_host_list("a:1,b:1"), command));
  EXPECT_NE(line.find("--prtemca plm_ssh_args '-F config -p 2222' p"), std::string::npos) << line;
}

TEST(JobCommand, WhatOpenMpiRefusesIsNamed) {
  const auto error = [](const char* list) { return error_of([&] { mpirun_words(parse_host_list(list), {}); }); };
  EXPECT_NE(error("[fd00::1]:8").find("-H, entry 1: Open MPI 4.1 refuses the name 'fd00::1'"), std::string::npos);
  EXPECT_NE(error("a_b:8").find("refuses the name 'a_b'"), std::string::npos);
  EXPECT_NE(error("a:8,me@b:8").find("-H, entry 2: Open MPI 4.1 takes no USER@ in -H"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::launch
