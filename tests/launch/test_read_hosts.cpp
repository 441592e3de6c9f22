#include "lockstep/launch/read_hosts.h"

#include <gtest/gtest.h>

#include "lockstep/launch/host_option.h"
#include "lockstep/launch/job_network.h"
#include "tests/messages.h"

namespace lockstep::launch {
namespace {

TEST(ReadHosts, AFilesFormIsSeenFromItsText) {
  EXPECT_EQ(form_of_text("# c\n\nnode1 slots=8\n"), HostsForm::Hostfile);
  EXPECT_EQ(form_of_text("node1\n"), HostsForm::Hostfile);
  EXPECT_EQ(form_of_text(" {\n"), HostsForm::RankTable);
  EXPECT_EQ(form_of_text("a:8,b:8\n"), HostsForm::HostList);
  EXPECT_EQ(form_of_text("export MASTER_ADDR=a\n"), HostsForm::Master);
  EXPECT_EQ(form_of_text("SLURM_JOB_NODELIST=n[1-2]\n"), HostsForm::Slurm);
  EXPECT_EQ(form_of_text(""), HostsForm::Hostfile);
}

TEST(ReadHosts, EveryFormGivesTheSameHosts) {
  const std::pair<HostsForm, const char*> texts[] = {
      {HostsForm::HostList, "a:2,b:2\n"},
      {HostsForm::Hostfile, "a slots=2\nb slots=2\n"},
      {HostsForm::Slurm, "SLURM_JOB_NODELIST=a,b\nSLURM_TASKS_PER_NODE='2(x2)'\n"},
      {HostsForm::RankTable,
       R"({"server_list": [{"server_id": "a", "device": [{"device_id": 0, "rank_id": 0}, {"device_id": 1, "rank_id": 1}]},
           {"server_id": "b", "device": [{"device_id": 0, "rank_id": 2}, {"device_id": 1, "rank_id": 3}]}]})"}};
  for (const auto& [form, text] : texts) {
    EXPECT_EQ(form_of_text(text), form) << text;
    EXPECT_EQ(to_host_list(read_hosts_text(text, "file", form).list), "a:2,b:2") << text;
    EXPECT_EQ(hosts_form(name_of(form)), form);
  }
}

TEST(ReadHosts, OfTheEnvironment) {
  const auto read = [](const std::string& text, std::optional<HostsForm> form = {}) {
    return read_hosts_settings(Settings::of_text(text, "env"), form);
  };
  EXPECT_FALSE(read("PATH=/bin\n").has_value());
  const std::string both = "MASTER_ADDR=a\nNNODES=2\nNPROC_PER_NODE=8\nSLURM_JOB_NODELIST=n[1-2]\n";
  EXPECT_EQ(read(both)->form, HostsForm::Slurm);
  EXPECT_EQ(read(both, HostsForm::Master)->master->nodes, 2);
  EXPECT_EQ(read("MASTER_ADDR=a\nNPROC_PER_NODE=8\n")->list.slots(), 8);
}

host::Interface interface(const char* name, const char* address, int prefix) {
  return {name, *host::parse_address(address), prefix};
}

// node1, with two networks and docker0, seen by a resolver that knows the names below.
NetworkFacts facts() {
  NetworkFacts facts{.there = {interface("lo", "127.0.0.1", 8), interface("eth0", "10.1.0.1", 24),
                               interface("eth1", "10.2.0.1", 24), interface("docker0", "172.17.0.1", 16)},
                     .host = "here"};
  facts.resolve = [](const std::string& name) -> std::vector<host::Address> {
    if (name == "far") return {*host::parse_address("10.1.7.9")};
    if (name == "self") return {*host::parse_address("127.0.1.1")};
    if (name == "node2") return {*host::parse_address("10.2.0.2")};
    if (name == "me") return {*host::parse_address("10.1.0.1")};
    return {};
  };
  facts.route = [there = facts.there](const host::Address& peer) -> std::optional<host::Interface> {
    for (const host::Interface& each : there) {
      if (each.network().holds(peer)) return each;
    }
    return there[1];
  };
  return facts;
}

TEST(JobNetwork, IsThatOfTheRoute) {
  const auto network = [](const char* list) { return find_network(parse_host_list(list), "", facts()); };
  EXPECT_EQ(network("me,node2").include, "10.2.0.0/24");
  EXPECT_EQ(network("me,node2").reason, "eth1, the route to node2");
  EXPECT_EQ(network("me,far").include, "10.1.0.0/21") << "holds both, behind a router";
  EXPECT_EQ(network("me,node2,nobody").include, "");
  EXPECT_NE(network("me,nobody").warnings.at(0).find("nobody (-H, entry 2) cannot be resolved on here"),
            std::string::npos);
  EXPECT_NE(network("me,self").warnings.at(0).find("is this machine itself"), std::string::npos);
}

TEST(JobNetwork, IsWhatIsSet) {
  const auto network = [](const char* setting) {
    return find_network(parse_host_list("a,b"), setting, facts()).include;
  };
  EXPECT_EQ(network("eth1"), "eth1");
  EXPECT_EQ(network("10.2.0.7"), "10.2.0.0/24");
  EXPECT_EQ(network("10.2.0.0/16,eth0"), "eth0,10.2.0.0/16") << "in the system's order";
  EXPECT_EQ(network("ib0"), "ib0") << "this machine is none of the hosts";
  EXPECT_NE(error_of([&] { network("10.9.0.7"); }).find("LOCKSTEP_INTERFACE has '10.9.0.7'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::launch
