// Lists of hosts in all their forms: hostfiles, -H lists, Slurm's node lists, settings, rank tables; each reader takes
// each text.
#include "lockstep/host/network.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/job_command.h"
#include "lockstep/launch/read_hosts.h"
#include "lockstep/launch/slurm_nodes.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {bytes_of("# racks\nnode1 slots=8\nme@node2 max_slots=16 slots = 4 # slow\n\nnode3\nnode3\n"),
          bytes_of("a:8,b,me@[fd00::1]:4,c:*"),
          bytes_of("n[001-003,7],m1"),
          bytes_of("r[1-2]n[9-10]-x"),
          bytes_of("8(x2),4"),
          bytes_of("SLURM_JOB_NODELIST=n[1-2],m\nSLURM_TASKS_PER_NODE='8(x2),4'\nSLURM_NTASKS=20\n"),
          bytes_of("export MASTER_ADDR=10.1.0.1\nMASTER_PORT=12345\nNNODES=2\nNODE_RANK=1\nNPROC_PER_NODE=8\n"),
          bytes_of(R"({"version": "1.0", "server_count": "2", "server_list": [
            {"server_id": "10.0.0.1", "device": [{"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"},
                                                 {"device_id": "1", "device_ip": "10.2.0.1", "rank_id": 1}]},
            {"server_id": "b", "device": [{"device_id": "0", "device_ip": "10.1.0.2", "rank_id": "2"}]}],
            "status": "completed"})"),
          bytes_of(R"({"group_count": "1", "group_list": [{"device_num": "1", "instance_count": "1", "instance_list": [
            {"devices": [{"device_id": "0", "device_ip": "fd00::1"}], "rank_id": "0", "server_id": "a"}]}],
            "status": "completed"})"),
          bytes_of("60000-60015"),
          bytes_of("eth0,10.1.0.0/16,fd00::7")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  using launch::HostsForm;
  const std::string text(fuzz::text_of(data, size));
  for (const HostsForm form : {HostsForm::HostList, HostsForm::Hostfile, HostsForm::Slurm, HostsForm::Master,
                               HostsForm::RankTable, launch::form_of_text(text)}) {
    fuzz::expect_answer([&] {
      const launch::HostList list = launch::read_hosts_text(text, "input", form).list;
      launch::to_node_list(list);
      launch::parse_host_list(launch::to_host_list(list));
      launch::shell_line(launch::mpirun_words(list, {.hostfile = "hosts"}));
    });
    fuzz::expect_answer([&] {
      const launch::HostList list = launch::read_hosts_text(text, "input", form).list;
      constexpr std::int64_t kSmall = 64;  // ranks, each of which has its lines in a table
      if (list.all_slots_said() && list.slots() <= kSmall)
        launch::parse_rank_table(launch::to_rank_table(list), "again");
    });
  }
  fuzz::expect_answer([&] { launch::expand_node_list(text, "input"); });
  fuzz::expect_answer([&] { launch::expand_task_counts(text, "input"); });
  fuzz::expect_answer([&] { launch::plan_ports(launch::parse_port_range(text), {.ranks_per_host = 8}); });
  static const std::vector<host::Interface> there = host::interfaces();
  fuzz::expect_answer([&] { host::choose_interfaces(text, there, "here"); });
  return 0;
}
