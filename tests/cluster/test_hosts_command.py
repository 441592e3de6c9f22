"""`lockstep hosts`: the command that it prints starts a job of 16 ranks on two hosts, whatever form the hosts were read from,
through a firewall that opens the ports it names alone, and on the network that LOCKSTEP_INTERFACE names."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import hosts
from test_cluster import ONCE, RANK_SETTINGS, ClusterTest

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402
from support import program  # noqa: E402

TRAIN = Path(os.environ["LOCKSTEP_SOURCE"]) / "scripts" / "train.sh"


class HostsCommand(ClusterTest):
    def on_first(self, cluster, words, **settings):
        """On node1, with what this machine needs of Open MPI: keys of its own, cores that hosts share."""
        files = cluster.directory
        variables = {**hosts.MACHINE, **hosts.arguments_of_ssh(f"-F {files}/ssh_config"), "OMPI_MCA_btl": hosts.transports(), **RANK_SETTINGS, **settings}
        assigned = [f"{name}={value}" for name, value in variables.items()]
        done = cluster.run_limited(cluster.command("node1", ["env", *assigned, *words]), support.LIMIT, subprocess.PIPE)
        return support.Result(done.returncode, done.stdout, done.stderr, 0)

    def tool(self, cluster, *arguments, **settings):
        return self.on_first(cluster, [*program("lockstep"), "hosts", *arguments], **settings)

    def printed(self, cluster, *arguments, **settings):
        result = self.tool(cluster, *arguments, **settings)
        self.assertEqual((result.status, result.stderr), (0, ""), result)
        return result.stdout

    def start_printed(self, cluster, *arguments, job=(*program("mpi_hello"),), **settings):
        """Runs the mpirun line that is printed; its ranks are 16, eight on each host in order."""
        line = self.printed(cluster, *arguments, "--to", "mpirun", "--", *job, **settings)
        words = shlex.split(line)
        # Called by its full path, mpirun gives the other hosts its own prefix.
        result = self.on_first(cluster, [hosts.shutil.which(words[0]), *words[1:]], **settings)
        self.assertEqual(result.status, 0, (line, result))
        for rank in range(16):
            expected = f"hello rank={rank} size=16 local_rank={rank % 8} local_size=8 host=node{rank // 8 + 1} "
            self.assertEqual(result.stdout.count(expected), 1, (line, result))
        return line, result

    def test_every_form_starts_the_same_job(self):
        cluster = self.cluster(2, slots=8)
        forms = {}
        for form in ("host-list", "rank-table", "slurm"):
            forms[form] = self.scratch / form
            forms[form].write_text(self.printed(cluster, "--file", cluster.hostfile, "--to", form))
        line, _ = self.start_printed(cluster, "--file", cluster.hostfile)
        self.assertIn("--mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 ", line)
        listed, _ = self.start_printed(cluster, "-H", "node1:8,node2:8")
        for form, file in forms.items():
            self.assertEqual(self.printed(cluster, "--file", file, "--to", "mpirun", "--", *program("mpi_hello")), listed, form)
        job = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_TASKS_PER_NODE": "8(x2)"}
        self.assertEqual(self.printed(cluster, "--to", "mpirun", "--", *program("mpi_hello"), **job), listed)
        named = {"MASTER_ADDR": "node1", "NNODES": 2, "NPROC_PER_NODE": 8, "MASTER_PORT": 12345}
        self.assertEqual(self.printed(cluster, "--to", "mpirun", "--", "./p", **named),
                         "lockstep launch --nnodes 2 --node-rank I --nproc-per-node 8 --master-addr node1 --master-port 12345 ./p\n")

    def test_fixed_ports_behind_a_firewall(self):
        cluster = self.cluster(2, slots=8)
        cluster.only_ports("60000-60017")
        text = self.printed(cluster, "--file", cluster.hostfile, "--ports", "60000-60017")
        self.assertIn("60000 and 60001 daemon (IPv4, IPv6), 60002-60017 ranks; 10 of 18 needed", text)
        self.assertIn("sysctl -w net.ipv4.ip_local_reserved_ports=60000-60017", text)
        for host in cluster.names:
            self.succeed(cluster.command(host, ["sysctl", "-qw", "net.ipv4.ip_local_reserved_ports=60000-60017"]))
        for _ in range(2):  # the second finds ports of the first in TIME_WAIT
            self.start_printed(cluster, "--file", cluster.hostfile, "--ports", "60000-60017")
        small = self.tool(cluster, "--file", cluster.hostfile, "--ports", "60000-60008")
        self.assertEqual(small.status, 1)
        self.assertIn("60000-60008 are 9 ports, but a host with 8 ranks needs 10", small.stderr)

    def test_interface_by_name_address_and_network(self):
        cluster = self.cluster(2, slots=8)
        for setting, means in (("eth0", "eth0"), ("10.77.0.1", "10.77.0.0/24"), ("10.77.0.0/16", "10.77.0.0/16")):
            _, result = self.start_printed(cluster, "--file", cluster.hostfile, job=(TRAIN, *program("mpi_hello")), LOCKSTEP_INTERFACE=setting)
            self.assertEqual(result.stdout.count(f" interface={means} "), 16, result)

    def test_wrong_hosts_are_refused_with_their_line(self):
        cluster = self.cluster(1)
        wrong = self.scratch / "hosts"
        wrong.write_text("node1 slots=8\nnode2:8\n")
        result = self.tool(cluster, "--file", wrong)
        self.assertEqual((result.status, result.stderr),
                         (1, f"lockstep: [hostfile] {wrong}:2: 'node2:8' is the form of -H and of MPICH; expected 'node2 slots=8'\n"))
        self.assertEqual(self.tool(cluster, "--from", "nothing").status, 2)

    def sent(self, cluster, card):
        return int(self.succeed(cluster.command("node1", ["cat", f"/sys/class/net/{card}/statistics/tx_bytes"])).stdout)

    def test_a_rank_prefers_its_own_network(self):
        """Programs read the setting by themselves. One rank on each host: both are local rank 0, which prefers the first."""
        cluster = self.cluster(2, slots=1)
        cluster.second_network()
        for preferred, other in (("eth1", "eth0"), ("eth0", "eth1")):
            before = [self.sent(cluster, card) for card in (preferred, other)]
            # So many steps that gradients are most of what is sent: ssh and Open MPI's daemons talk over eth0, whichever is preferred.
            command = program("train_mnist", "--model", "mlp", "--limit-train", 640, "--limit-eval", 32, "--global-batch", 32, *ONCE,
                              "--max-steps", 60, "--output", self.scratch / preferred)
            line = self.printed(cluster, "--file", cluster.hostfile, "--to", "mpirun", "--", *command,
                                LOCKSTEP_INTERFACE=f"{preferred},{other}", LOCKSTEP_INTERFACE_POLICY="rank")
            words = shlex.split(line)
            result = self.on_first(cluster, [hosts.shutil.which(words[0]), *words[1:]])
            self.assertEqual(result.status, 0, (line, result))
            much, little = (self.sent(cluster, card) - was for card, was in zip((preferred, other), before))
            self.assertGreater(much, 4 * little, f"{much} bytes by {preferred}, {little} by {other}: {line}\n{result}")


if __name__ == "__main__":
    try:
        hosts.check_available()
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    support.main()
