"""Ranks on several hosts, started through ssh and a hostfile: what they compute is what one host computes."""

import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hosts

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402
from support import checkpoints, metrics, program, ranks  # noqa: E402

RANK_SETTINGS = {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1, "ASAN_OPTIONS": "detect_leaks=0"}  # as tests/mpi/run.sh
ONCE = ["--threads", 1, "--loaders", 0, "--log-every", 1, "--checkpoint-every", 0]


class ClusterTest(support.SystemTest):
    def cluster(self, *arguments, **options):
        cluster = hosts.Cluster(*arguments, **options)
        self.addCleanup(cluster.close)
        return cluster

    def mpirun(self, cluster, size, command, limit=support.LIMIT, **settings):
        began = time.monotonic()
        try:
            done = cluster.mpirun(size, command, limit, environment=RANK_SETTINGS, **settings)
        except subprocess.TimeoutExpired as late:
            self.fail(f"not over after {limit} s: {command}\n{late.stdout}\n{late.stderr}")
        return support.Result(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


class Hosts(ClusterTest):
    def on(self, cluster, host, *command):
        return self.run_command(cluster.command(host, command, "/"))

    def reaches(self, cluster, host, address):
        """Whether a connection is made within a second."""
        connect = f"import socket; socket.create_connection(('{address}', 22), 1).close()"
        return self.on(cluster, host, sys.executable, "-c", connect).status == 0

    def expect_reached(self, cluster, host, address):
        deadline = time.monotonic() + support.SOON
        while not self.reaches(cluster, host, address):
            self.assertLess(time.monotonic(), deadline, f"{host} never reached {address}")

    def datagrams(self, cluster, number):
        """How many of so many arrive. Of the hundred that say it is over, one will."""
        count = ("import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5001)); print(flush=True); n = 0\n"
                 "while s.recv(10) != b'end': n += 1\n"
                 "print(n)")
        send = (f"import socket; s = socket.socket(type=socket.SOCK_DGRAM)\n"
                f"for text in [b'one'] * {number} + [b'end'] * 100: s.sendto(text, ('node2', 5001))")
        receiver = self.start(cluster.command("node2", [sys.executable, "-c", count], "/"))
        receiver.stdout.readline()
        self.succeed(cluster.command("node1", [sys.executable, "-c", send], "/"))
        return int(self.finish(receiver).stdout)

    def test_names_network_and_memory_are_their_own(self):
        cluster = self.cluster(3)
        for host in cluster.names:
            self.assertEqual(self.on(cluster, host, "uname", "-n").stdout, f"{host}\n")
            self.succeed(cluster.command(host, ["touch", f"/dev/shm/{host}"]))
            self.assertEqual(self.on(cluster, host, "ls", "/dev/shm").stdout, f"{host}\n")
            for peer in cluster.names:
                self.expect_reached(cluster, host, peer)
        self.assertNotEqual(socket.gethostname(), "node1")

    def test_two_clusters_and_nothing_left(self):
        with hosts.Cluster(1) as first, hosts.Cluster(1) as second:
            kept = [first.directory, second.directory]
            self.succeed(first.command("node1", ["touch", "/run/seen"]))
            self.assertEqual(self.on(second, "node1", "ls", "/run/seen").status, 2)
            left = self.start(first.command("node1", ["sleep", "1000"]))
            first.close()
            self.assertNotEqual(self.finish(left).status, 0)
            self.assertEqual(self.on(second, "node1", "true").status, 0)
        for directory in kept:
            self.assertFalse(directory.exists())
            self.assertEqual(support.processes_with(str(directory)), [])

    def test_a_killed_owner_takes_its_hosts_along(self):
        script = "import hosts, time; c = hosts.Cluster(1); print(c.directory, flush=True); time.sleep(1000)"
        owner = self.start([sys.executable, "-B", "-c", script], dict(os.environ, PYTHONPATH=str(Path(hosts.__file__).parent)))
        directory = owner.stdout.readline().strip()
        self.assertTrue(support.processes_with(directory))
        owner.kill()
        self.finish(owner)
        self.expect_gone(directory)
        hosts.clusters_up()
        self.assertFalse(Path(directory).exists())

    def test_faults(self):
        cluster = self.cluster(2)
        self.expect_reached(cluster, "node1", "node2")
        cluster.link("node2", "down")
        self.assertFalse(self.reaches(cluster, "node1", "node2"))
        cluster.link("node2", "up")
        self.expect_reached(cluster, "node1", "node2")
        cluster.loss("node2", 100)
        self.assertFalse(self.reaches(cluster, "node1", "node2"))
        cluster.loss("node2", 0)
        self.expect_reached(cluster, "node1", "node2")
        cluster.loss("node2", 50)
        self.assertTrue(60 < self.datagrams(cluster, 200) < 140)  # five standard deviations
        cluster.loss("node2", 0)
        self.assertEqual(self.datagrams(cluster, 200), 200)
        cluster.kill("node2")
        self.assertFalse(self.reaches(cluster, "node1", "node2"))
        self.expect_reached(cluster, "node1", "node1")

    def test_a_cable_has_its_rate(self):
        cluster = self.cluster(2, rate="80mbit")
        receive = ("import socket; s = socket.create_server(('', 5000)); print(flush=True); c = s.accept()[0]\n"
                   "while c.recv(1 << 20): pass")
        send = "import socket; socket.create_connection(('node2', 5000)).sendall(bytes(10**7))"
        server = self.start(cluster.command("node2", [sys.executable, "-c", receive], "/"))
        server.stdout.readline()
        began = time.monotonic()
        self.succeed(cluster.command("node1", [sys.executable, "-c", send]))
        self.assertEqual(self.finish(server).status, 0)
        self.assertGreater(time.monotonic() - began, 0.9)  # 10 MB at 10 MB/s, less what the bucket holds

    def test_command_line(self):
        script = Path(hosts.__file__)
        hostfile = self.succeed([script, "up", 2, "--slots", 3, "--rate", "1gbit"]).stdout
        self.assertRegex(hostfile, "^# lockstep-cluster-.*\nnode1 slots=3\nnode2 slots=3\n$")
        mine = support.clean_environment(LOCKSTEP_CLUSTER=hostfile.split()[1])
        self.addCleanup(self.run_command, [script, "down"], environment=mine)
        self.assertEqual(self.succeed([script, "exec", "node2", "uname", "-n"], environment=mine).stdout, "node2\n")
        self.assertEqual(self.run_command([script, "exec", "node1", "sh", "-c", "exit 7"], environment=mine).status, 7)
        result = self.succeed([script, "mpirun", "--limit", support.LIMIT, 4, "--map-by", "node",
                               "-x", f"ASAN_OPTIONS={RANK_SETTINGS['ASAN_OPTIONS']}", *program("mpi_hello")], environment=mine)
        self.assertEqual(result.stdout.count(" local_size=2 "), 4, result)
        self.assertEqual(self.run_command([script, "mpirun", 2, "false"], environment=mine).status, 1)
        self.succeed([script, "kill", "node2"], environment=mine)
        result = self.run_command([script, "exec", "node2", "true"], environment=mine)
        self.assertEqual((result.status, result.stderr), (1, "hosts.py: node2 is no more\n"))
        self.succeed([script, "down"], environment=mine)
        self.assertEqual(self.run_command([script, "down"], environment=mine).status, 1)
        self.assertEqual(support.processes_with(mine["LOCKSTEP_CLUSTER"]), [])


class Watchdog(ClusterTest):
    """A stopped process on another host, of which somebody can still speak."""

    def stall(self, slots, size, rank):
        cluster = self.cluster(2, slots=slots)
        command = program("train_mnist", "--model", "mlp", "--limit-train", 640, "--global-batch", 64, *ONCE, "--max-steps", 20,
                          "--stall-timeout", 4, "--abort-timeout", 12, "--output", self.scratch / "run")
        result = self.mpirun(cluster, size, ["-x", f"LOCKSTEP_FAULT=step.begin:stop:rank={rank}:at=5", *command])
        self.assertEqual(result.status, 76, result)
        self.expect_no_process()
        return result

    def test_by_another_rank_of_its_host(self):
        result = self.stall(2, 4, 2)  # the first of node2
        self.assertRegex(result.output, r"rank 2 on host node2 has not moved for \d+ s: at step 5, .* is stopped \(state T")
        self.assertEqual(support.standing(result.output), {2: 5}, result)

    def test_by_the_other_host(self):
        self.assertIn("host node2 (ranks 1 to 1) has not been heard for", self.stall(1, 2, 1).output)


class Launch(ClusterTest):
    def test_ranks_are_placed_by_host(self):
        result = self.mpirun(self.cluster(2, slots=2), 4, program("mpi_hello"))
        self.assertEqual(result.status, 0, result)
        for rank in range(4):
            line = f"hello rank={rank} size=4 local_rank={rank % 2} local_size=2 host=node{rank // 2 + 1} "
            self.assertEqual(result.stdout.count(line), 1, f"{line}\n{result}")

    def test_a_wrong_name_is_named(self):
        wrong = self.scratch / "hosts"
        wrong.write_text("node1 slots=2\nnode9 slots=2\n")
        result = self.mpirun(self.cluster(2), 4, program("mpi_hello"), hostfile=wrong)
        self.assertNotEqual(result.status, 0, result)
        self.assertIn("ssh: Could not resolve hostname node9", result.output)
        self.assertNotIn("hello rank", result.output)

    def is_quiet(self, cluster):
        """For two seconds nothing was sent, and all has been acknowledged: keepalive probes are sent only where that is so."""
        def connections():
            return {host: self.succeed(cluster.command(host, ["ss", "-tinHO", "state", "established"])).stdout for host in cluster.names}

        def sent(text):
            return re.findall(r"bytes_sent:(\d+)", text)

        before = connections()
        time.sleep(2)
        after = connections()
        return all(sent(before[host]) == sent(after[host]) and not re.search(r"unacked:", after[host]) for host in cluster.names)

    def test_a_host_gone_silent_ends_the_job(self):
        cluster = self.cluster(2)
        sleep = ["sleep", f"1001.{os.getpid()}"]
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(self.mpirun, cluster, 4, sleep)
            while not job.done() and len(support.processes_with("\0".join(sleep))) < 6:  # nsenter, mpirun, four ranks
                time.sleep(0.05)
            while not job.done() and not self.is_quiet(cluster):
                pass
            cluster.loss("node2", 100)
            result = job.result()
        if hosts.open_mpi() < 5:
            self.assertEqual(result.status, 205, result)
        self.assertRegex(result.output, "Remote daemon: .* on node node2")  # that of 5.0.7 ends with 0

    def test_a_time_limit_ends_all(self):
        cluster = self.cluster(2)
        with self.assertRaises(subprocess.TimeoutExpired):
            cluster.mpirun(4, ["sleep", f"1000.{os.getpid()}"], limit=3)
        self.assertEqual(support.processes_with(f"1000.{os.getpid()}"), [])
        self.assertEqual(self.mpirun(cluster, 4, program("mpi_hello")).status, 0)  # the hosts are still good


class SameBits(ClusterTest):
    def expect_one_host_and_two(self, size, name, *options):
        """The same command on one host, on two with neighbours together, and on two with neighbours apart."""
        cluster = self.cluster(2, slots=(size + 1) // 2)
        found = {}
        for way, placement in (("one", []), ("two", []), ("dealt", ["--map-by", "node"])):
            command = program(name, *options, *ONCE, "--output", self.scratch / way)
            if way == "one":
                result = self.succeed(ranks(size, command))
            else:
                result = self.mpirun(cluster, size, [*placement, *command])
            self.assertEqual(result.status, 0, result)
            hosts_said = "1 host" if way == "one" else "2 hosts"
            self.assertEqual(result.output.count(f"{size} ranks on {hosts_said}"), 1, result)
            found[way] = (metrics(self.scratch / way), self.state(checkpoints(self.scratch / way)[-1])["tensors"])
        self.assertGreater(len(found["one"][0]), 2)
        self.assertEqual(found["two"], found["one"])
        self.assertEqual(found["dealt"], found["one"])

    def test_two_by_two_with_shards(self):
        self.expect_one_host_and_two(4, "train_resnet", "--depth", 20, "--dataset", "digits", "--limit-train", 400, "--limit-eval", 64,
                                     "--global-batch", 64, "--max-steps", 6, "--checkpoint-every-steps", 6, "--shards", 4)

    def test_eight_shards_on_two_ranks_and_one(self):
        self.expect_one_host_and_two(3, "train_resnet", "--depth", 20, "--dataset", "digits", "--limit-train", 130, "--limit-eval", 16,
                                     "--global-batch", 20, "--max-steps", 8, "--checkpoint-every-steps", 8, "--shards", 8)

    def test_two_by_two_without_shards(self):
        self.expect_one_host_and_two(4, "train_resnet", "--depth", 20, "--dataset", "digits", "--limit-train", 400, "--limit-eval", 64,
                                     "--global-batch", 64, "--max-steps", 6, "--checkpoint-every-steps", 6)

    def test_two_by_eight(self):
        self.expect_one_host_and_two(16, "train_toy", "--dataset", "digits", "--limit-train", 96, "--limit-eval", 32, "--global-batch", 32,
                                     "--max-steps", 3, "--checkpoint-every-steps", 3, "--shards", 16)


if __name__ == "__main__":
    try:
        hosts.check_available()
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    support.main()
