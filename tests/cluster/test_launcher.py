"""`lockstep launch` on hosts that have no ssh to use: the same command on each becomes one job of those that know the secret."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import hosts
from test_cluster import ONCE, RANK_SETTINGS, ClusterTest
import support
from support import SOURCE, checkpoints, metrics, program

PORT = 29500
TOY = ["--dataset", "digits", "--limit-train", 96, "--limit-eval", 32, "--global-batch", 32, "--max-steps", 3, "--checkpoint-every-steps", 3,
       "--shards", 16, *ONCE]


class LauncherTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.secret = self.write_secret("secret", "the secret of these tests")
        self.hosts = self.cluster(self.HOSTS, slots=self.SLOTS)

    HOSTS = SLOTS = 2

    def tearDown(self):
        self.expect_nothing_left()

    def write_secret(self, name, text):
        path = self.scratch / name
        path.touch(0o600)
        path.write_text(text + "\n")
        return path

    def on(self, host, command):
        """Starts a command on a host, with the settings of a test machine."""
        settings = {**RANK_SETTINGS, **hosts.MACHINE, "OMPI_MCA_btl": hosts.transports()}
        return self.start(self.hosts.command(host, ["env", *(f"{k}={v}" for k, v in settings.items()), *map(str, command)], self.scratch))

    def words(self, rank, command, *options, nodes=2, ranks=2, secret=None, meeting=("--master-port", PORT)):
        return program("lockstep", "launch", "--nnodes", nodes, "--node-rank", rank, "--nproc-per-node", ranks, "--master-addr", "node1",
                       *meeting, "--secret-file", secret or self.secret, *options, *command)

    def node(self, rank, command, *options, host=None, **settings):
        return self.on(host or f"node{rank + 1}", self.words(rank, command, *options, **settings))

    def finish_all(self, *processes):
        return [self.finish(process) for process in processes]

    def left(self):
        """What is left of a job on the hosts: processes, and files of Open MPI."""
        look = "ps -eo args | grep -E 'orted|prted|mpirun|prterun|launch-rank' | grep -v grep; ls -d /run/ompi.*/* /run/prte* /dev/shm/* 2>/dev/null; true"
        return "".join(self.run_command(self.hosts.command(host, ["sh", "-c", look], "/")).stdout for host in self.hosts.names)

    def expect_nothing_left(self):
        deadline = time.monotonic() + support.SOON
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(left, "")

    def wait_until_listening(self, process):
        look = self.hosts.command("node1", ["sh", "-c", f"ss -tln | grep -q :{PORT}"], "/")
        self.wait_for(process, lambda: self.run_command(look).status == 0)

    def wait_for_ranks(self, process, number, text):
        self.wait_for(process, lambda: sum(1 for p in support.processes_with(text) if is_rank(p)) >= number)


def untagged(text):
    """As Open MPI 4 tags it: 5 has a blank behind the tag."""
    return text.replace("<stdout>: ", "<stdout>:")


def is_rank(pid):
    try:
        return b"\0LOCAL_WORLD_SIZE=" in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # it has ended


class Launcher(LauncherTest):
    def test_two_by_eight_computes_what_one_by_four_does(self):
        results = self.finish_all(*(self.node(rank, program("train_toy", *TOY, "--output", self.scratch / "two"), ranks=8) for rank in (0, 1)))
        self.assertEqual([r.status for r in results], [0, 0], "\n".join(map(str, results)))
        self.assertIn("lockstep launch: 16 ranks on 2 nodes: node1:8,node2:8", results[0].stderr)
        self.assertEqual(results[0].output.count("16 ranks on 2 hosts"), 1, results[0])
        alone = self.finish(self.on("node1", program("lockstep", "launch", "--nproc-per-node", 4,
                                                     *program("train_toy", *TOY, "--output", self.scratch / "one"))))
        self.assertEqual(alone.status, 0, alone)
        self.assertEqual(alone.output.count("4 ranks on 1 host"), 1, alone)
        one, two = ((metrics(self.scratch / way), self.state(checkpoints(self.scratch / way)[-1])["tensors"]) for way in ("one", "two"))
        self.assertGreater(len(one[0]), 2)
        self.assertEqual(one, two)

    def test_variables_output_and_exit_status(self):
        show = ["sh", "-c", 'echo "rank=$RANK of=$WORLD_SIZE local=$LOCAL_RANK of=$LOCAL_WORLD_SIZE node=$NODE_RANK at=$MASTER_ADDR '
                            'here=$(uname -n) secret=$LOCKSTEP_LAUNCH_SECRET$LOCKSTEP_LAUNCH_AGENT dir=$PWD"; touch "said.$RANK"; '
                            'test "$RANK" != 3 && exit; until test -e said.0 -a -e said.1 -a -e said.2; do sleep 0.1; done; exit 7']
        first, second = self.finish_all(self.node(0, show, "--tag-output"), self.node(1, show, "--tag-output"))
        self.assertEqual((first.status, second.status), (7, 7), f"{first}\n{second}")
        for rank in range(3):
            self.assertRegex(untagged(first.stdout), rf"\[1,{rank}\]<stdout>:rank={rank} of=4 local={rank % 2} of=2 node={rank // 2} at=node1 "
                                                     rf"here=node{rank // 2 + 1} secret= dir={re.escape(str(self.scratch))}\n")

    def test_who_lacks_the_secret_is_refused_and_the_job_starts(self):
        first = self.node(0, ["sh", "-c", "echo rank=$RANK"])
        self.wait_until_listening(first)
        knock = f"import socket; s = socket.create_connection(('node1', {PORT}))\n"
        noise = knock + "try: s.sendall(b'x' * 2**20)\nexcept OSError: pass\n"
        half_open = self.on("node2", [sys.executable, "-c", knock + "try: s.recv(1)\nexcept OSError: pass"])
        self.finish(self.on("node2", [sys.executable, "-c", noise]))
        self.finish(self.on("node2", [sys.executable, "-c", knock]))  # a port scan
        wrong = self.finish(self.node(1, ["true"], secret=self.write_secret("wrong", "another secret for these tests")))
        self.assertEqual(wrong.status, 2, wrong)
        self.assertIn("lockstep launch: node 0 at node1:29500 has another secret than this node", wrong.stderr)
        second = self.node(1, ["sh", "-c", "echo rank=$RANK"])
        results = self.finish_all(first, second)
        self.assertEqual([r.status for r in results], [0, 0], "\n".join(map(str, results)))
        self.assertEqual(sorted(results[0].stdout.split()), [f"rank={rank}" for rank in range(4)])
        self.assertEqual(len(re.findall(r"a connection from 10\.77\.0\.2:\d+ is refused: ", results[0].stderr)), 1, results[0])
        self.finish(half_open)

    def test_a_secret_is_needed_and_kept(self):
        words = self.words(0, ["true"])
        at = words.index("--secret-file")
        result = self.finish(self.on("node1", words[:at] + words[at + 2:]))
        self.assertEqual(result.status, 2, result)
        self.assertIn("openssl rand -hex 32", result.stderr)
        self.secret.chmod(0o644)
        result = self.finish(self.node(0, ["true"]))
        self.assertEqual(result.status, 2, result)
        self.assertIn("has mode 0644, expected 0600", result.stderr)

    def test_missing_nodes_are_named(self):
        first, second = self.node(0, ["true"], "--timeout", 8, nodes=4), self.node(2, ["true"], nodes=4, host="node2")
        for result in self.finish_all(first, second):
            self.assertEqual(result.status, 1, result)
            self.assertRegex(result.stderr, r"nodes 1, 3 of 4 did not join within 8 s; there: node 0 \(node1\), node 2 \(node2, 10\.77\.0\.2:\d+\)")

    def test_a_node_that_finds_nobody_says_so(self):
        result = self.finish(self.node(1, ["true"], "--timeout", 1))
        self.assertEqual(result.status, 1, result)
        self.assertIn("node 1 did not find node 0 within 1 s: node1:29500: Connection refused", result.stderr)

    def test_differences_are_named(self):
        other = self.scratch / "other"
        other.write_text("#!/bin/sh\n")
        other.chmod(0o755)
        for command, fragment in ((["echo", "b"], "argument 1 is 'b', on node 0 'a'"), (["./none", "a"], "no program './none' (working directory ")):
            for result in self.finish_all(self.node(0, ["echo", "a"]), self.node(1, command)):
                self.assertEqual(result.status, 2, result)
                self.assertIn("the nodes do not start the same job:", result.stderr)
                self.assertIn("node 1 (node2, ", result.stderr)
                self.assertIn(fragment, result.stderr)
        first, second = self.finish_all(self.node(0, ["echo", "a"], "--allow-differences"), self.node(1, ["echo", "b"], "--allow-differences"))
        self.assertEqual((first.status, second.status), (0, 0), f"{first}\n{second}")
        self.assertEqual(sorted(first.stdout.split()), ["a", "a", "b", "b"])

    def test_ports_are_those_of_the_range_alone(self):
        """Two jobs, the second soon after the first, behind a firewall that takes connections at these ports alone."""
        ports = "61000-61006"  # 2 for the daemon, 1 for launch, 2 for the ranks, 2 for those of the second job
        self.hosts.only_ports(ports)
        for host in self.hosts.names:
            self.succeed(self.hosts.command(host, ["sysctl", "-qw", f"net.ipv4.ip_local_reserved_ports={ports}"]))
        for _ in range(2):
            first, second = self.finish_all(*(self.node(rank, program("mpi_hello"), meeting=("--ports", ports)) for rank in (0, 1)))
            self.assertEqual((first.status, second.status), (0, 0), f"{first}\n{second}")
            for rank in range(4):
                expected = f"hello rank={rank} size=4 local_rank={rank % 2} local_size=2 host=node{rank // 2 + 1} "
                self.assertEqual(first.stdout.count(expected), 1, first)

    def test_a_range_of_ports_that_is_too_small_is_refused(self):
        result = self.finish(self.node(0, ["true"], meeting=("--ports", "61000-61003")))
        self.assertEqual(result.status, 2, result)
        self.assertIn("61000-61003 are 4 ports, but a host with 2 ranks needs 5: 2 for the daemon, 1 for launch, 2 for the ranks", result.stderr)
        result = self.finish(self.node(1, ["true"], "--ports", "61000-61010"))
        self.assertEqual(result.status, 2, result)
        self.assertIn(f"--master-port (or MASTER_PORT) is {PORT}, and in --ports 61000-61010 the port of node 0's launcher is 61002", result.stderr)
        # Node 0's range counts for all nodes.
        first = self.node(0, ["true"], meeting=("--ports", "61000-61004"))
        second = self.node(1, ["true"], ranks=3, meeting=("--ports", "61000-61010"))
        for result in self.finish_all(first, second):
            self.assertEqual(result.status, 2, result)
            self.assertIn("61000-61004 are 5 ports, but a host with 3 ranks needs 6", result.stderr)

    def test_names_of_hosts_need_not_be_known(self):
        (self.hosts.directory / "hosts").write_text("127.0.0.1 localhost\n")
        words = [self.words(rank, ["sh", "-c", "echo rank=$RANK on $(uname -n)"]) for rank in (0, 1)]
        results = self.finish_all(*(self.on(f"node{i + 1}", ["10.77.0.1" if w == "node1" else w for w in words[i]]) for i in (0, 1)))
        self.assertEqual([r.status for r in results], [0, 0], "\n".join(map(str, results)))
        self.assertEqual(sorted(results[0].stdout.splitlines()), [f"rank={rank} on node{rank // 2 + 1}" for rank in range(4)])

    def test_by_ssh_at_another_port(self):
        port, files = 12345, self.hosts.directory
        self.finish(self.on("node2", [hosts.shutil.which("sshd"), "-f", files / "sshd_config", "-p", port]))
        listens = self.hosts.command("node2", ["sh", "-c", f"ss -tln | grep -q :{port}"], "/")
        while self.run_command(listens).status != 0:
            time.sleep(0.05)
        ours = f"--mca plm_rsh_args '-F {files}/ssh_config' --mca oob_tcp_if_include 10.77.0.0/24 --tag-output"
        result = self.finish(self.on("node1", program("lockstep", "launch", "-n", 4, "-H", "node1:2,node2:2", "-p", port, "--mpi-args", ours,
                                                      "sh", "-c", "echo rank=$RANK node=$NODE_RANK $(uname -n) from ${SSH_CONNECTION##* }")))
        self.assertEqual(result.status, 0, result)
        said = untagged(result.stdout)
        for rank in range(2):
            self.assertIn(f"[1,{rank}]<stdout>:rank={rank} node=0 node1 from", said)
            self.assertIn(f"[1,{rank + 2}]<stdout>:rank={rank + 2} node=1 node2 from {port}\n", said)
        result = self.finish(self.on("node1", program("lockstep", "launch", "--hostfile", self.hosts.hostfile, "-p", port, "--ports", "61000-61007",
                                                      "--mpi-args", ours, *program("mpi_hello"))))
        self.assertEqual(result.status, 0, result)
        self.assertEqual([result.stdout.count(f"hello rank={rank} size=4 ") for rank in range(4)], [1] * 4, result)


class LauncherThreeNodes(LauncherTest):
    HOSTS = 3

    def test_a_node_that_is_there_twice_is_named(self):
        first = self.node(0, ["true"], nodes=3)
        self.wait_until_listening(first)
        both = {host: self.node(1, ["true"], nodes=3, host=host) for host in ("node2", "node3")}
        self.wait_for(first, lambda: any(process.poll() is not None for process in both.values()))  # the later one is refused
        free = next(host for host, process in both.items() if process.poll() is not None)
        refused = self.finish(both.pop(free))
        self.assertEqual(refused.status, 2, refused)
        self.assertRegex(refused.stderr, r"node 0 refuses this node: --node-rank 1 is there twice: node 1 \(node\d, \S+\) and node\d \(\S+\)")
        third = self.node(2, ["true"], nodes=3, host=free)
        for result in self.finish_all(first, *both.values(), third):
            self.assertEqual(result.status, 0, result)


class LauncherEnds(LauncherTest):
    """A piece of a job is killed or asked to end: all of it ends, and nothing is left (tearDown looks)."""

    def start_job(self, command=None):
        self.mark = f"1000.{os.getpid()}"
        nodes = [self.node(rank, command or ["sleep", self.mark]) for rank in (0, 1)]
        self.wait_for_ranks(nodes[0], 4, self.mark)
        return nodes

    def pid_of(self, *texts):
        """The one process with all these texts on its command line that is no wrapper of the test's."""
        found = [p for p in support.processes_with(texts[0]) if all(p in support.processes_with(t) for t in texts)]
        found = [p for p in found if Path(f"/proc/{p}/exe").resolve().name in ("lockstep", "mpirun", "orterun", "prte")]
        self.assertEqual(len(found), 1, [Path(f"/proc/{p}/cmdline").read_bytes() for p in found])
        return found[0]

    def expect_all_gone(self):
        deadline = time.monotonic() + support.SOON
        while support.processes_with(self.mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(support.processes_with(self.mark), [])

    def test_a_killed_launcher_is_named(self):
        first, second = self.start_job()
        os.kill(self.pid_of("--node-rank\x001", self.mark), signal.SIGKILL)
        result = self.finish(first)
        self.assertEqual(result.status, 205, result)
        self.assertRegex(result.stderr, r"node 1 \(node2, \S+\) is lost: .*; the job is ended")
        self.finish(second)
        self.expect_all_gone()

    def test_killed_launcher_of_node_0(self):
        first, second = self.start_job()
        os.kill(self.pid_of("--node-rank\x000", self.mark), signal.SIGKILL)
        self.finish(first)
        result = self.finish(second)
        self.assertEqual(result.status, 1, result)
        self.assertIn("node 0 is lost: ", result.stderr)
        self.expect_all_gone()

    def test_killed_mpirun(self):
        first, second = self.start_job()
        os.kill(self.pid_of("run\0", "launch-rank", self.mark), signal.SIGKILL)
        for result in self.finish_all(first, second):
            self.assertEqual(result.status, 137, result)
            self.assertIn("mpirun: signal 9", result.stderr)
        self.expect_all_gone()

    def test_killed_daemon(self):
        first, second = self.start_job()
        daemons = [p for p in support.processes_with("_hnp_uri") if self.hosts.has(p) and Path(f"/proc/{p}/exe").resolve().name in ("orted", "prted")]
        self.assertEqual(len(daemons), 1)
        os.kill(daemons[0], signal.SIGKILL)
        for result in self.finish_all(first, second):
            self.assertNotEqual(result.status, 0, result)
        self.expect_all_gone()

    def test_a_signal_on_any_node_ends_all(self):
        for rank in (0, 1):
            first, second = self.start_job()
            os.kill(self.pid_of(f"--node-rank\0{rank}", self.mark), signal.SIGINT)
            for result in self.finish_all(first, second):
                self.assertEqual(result.status, 143, result)
                self.assertIn(f"signal 2 (Interrupt) came to node {rank}", result.stderr)
            self.expect_all_gone()

    def test_a_request_to_stop_reaches_all_ranks(self):
        output = self.scratch / "run"
        self.mark = str(output)
        training = program("train_toy", *TOY, "--max-steps", 1000000, "--epochs", 0, "--output", output)
        nodes = [self.node(rank, training) for rank in (0, 1)]
        self.wait_for(nodes[0], lambda: (output / "metrics.jsonl").exists() and metrics(output))
        os.kill(self.pid_of("--node-rank\x001", self.mark), signal.SIGUSR2)
        for result in self.finish_all(*nodes):
            self.assertEqual(result.status, 75, result)
        self.assertTrue(checkpoints(output))

    def test_under_a_supervisor_the_job_goes_on(self):
        output = self.scratch / "run"
        text = f'test -e {output}/failed || {{ sleep 1; test "$RANK" != 2 || {{ touch {output}/failed; kill -9 $$; }}; sleep 1000; }}'
        command = ["sh", "-c", text, "sh", "--output", output]
        first, second = (self.on(f"node{rank + 1}", program("lockstep", "run", "--backoff", 0.1, "--", *self.words(rank, command)))
                         for rank in (0, 1))
        results = self.finish_all(first, second)
        self.assertEqual([r.status for r in results], [0, 0], "\n".join(map(str, results)))
        self.assertEqual(results[0].stderr.count("lockstep run: start "), 2, results[0])


class NodeWrapper(LauncherTest):
    def test_one_wrapper_per_node_is_one_job(self):
        """Each node has its own copy, with its own settings."""
        copies = []
        for host in self.hosts.names:
            folder = self.scratch / "copies" / host
            folder.mkdir(parents=True)
            (folder / "train.sh").write_text((SOURCE / "scripts" / "train.sh").read_text())
            (folder / "train.sh").chmod(0o755)
            (folder / "train.env").write_text(f"SETTING=of_{host}\n")
            copies.append(folder)
        start = self.scratch / "start.sh"  # a path that leads to another file on each node
        start.write_text(f'#!/bin/sh\nexec {self.scratch}/copies/$(uname -n)/train.sh "$@"\n')
        start.chmod(0o755)
        show = ["sh", "-c", "echo rank=$RANK local=$OMPI_COMM_WORLD_LOCAL_RANK host=$(uname -n) setting=$SETTING"]
        for wrapper, setting in ((start, "of_{}"), (SOURCE / "scripts" / "train.sh", "")):
            command = self.hosts.mpirun_words(2, ["--map-by", "slot", wrapper, "--ranks-per-node", 8, "--ports", "61000-61018", *show],
                                              environment=dict(RANK_SETTINGS, LOCKSTEP_TOOL=program("lockstep")[0], **({"LOCKSTEP_NODE_ENV": "/dev/null"} if not setting else {})),
                                              hostfile=self.one_slot_each())
            result = self.finish(self.start(self.hosts.command("node1", command, self.scratch)))
            self.assertEqual(result.status, 0, result)
            for rank in range(16):
                host = f"node{rank // 8 + 1}"
                self.assertEqual(result.stdout.count(f"rank={rank} local={rank % 8} host={host} setting={setting.format(host)}\n"), 1, result)

    def one_slot_each(self):
        path = self.scratch / "hosts"
        path.write_text("".join(f"{name} slots=1\n" for name in self.hosts.names))
        return path


class Habits(LauncherTest):
    """Rows of "Coming from torchrun, horovodrun or MindSpore" in docs/launch.md that no other test holds."""

    HOSTS = 1

    def launch(self, *words, before=()):
        return self.finish(self.on("node1", [*before, *program("lockstep", "launch", *words)]))

    def test_auto_is_a_rank_per_core(self):
        core = ["taskset", "-c", min(os.sched_getaffinity(0))]
        count = ["sh", "-c", "echo of=$WORLD_SIZE"]
        for words, variables in ((["--nproc-per-node", "auto"], []), ([], ["NPROC_PER_NODE=auto"])):
            result = self.launch(*words, *count, before=[*core, "env", *variables])
            self.assertEqual((result.status, result.stdout), (0, "of=1\n"), result)

    def test_numbers_of_a_rank_are_those_of_mpi(self):
        """MindSpore's RANK_ID, DEVICE_ID and RANK_SIZE have these names."""
        show = ["sh", "-c", "echo rank=$RANK,$OMPI_COMM_WORLD_RANK local=$LOCAL_RANK,$OMPI_COMM_WORLD_LOCAL_RANK "
                            "of=$WORLD_SIZE,$OMPI_COMM_WORLD_SIZE"]
        result = self.launch("--nproc-per-node", 2, *show)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(sorted(result.stdout.splitlines()), [f"rank={rank},{rank} local={rank},{rank} of=2,2" for rank in (0, 1)])

    def test_failures_are_counted_as_by_max_restarts(self):
        job = program("lockstep", "launch", "--nproc-per-node", 2, "sh", "-c", "exit 7", "sh", "--output", self.scratch / "run")
        result = self.finish(self.on("node1", program("lockstep", "run", "--max-restarts", 1, "--backoff", 0.1, "--", *job)))
        self.assertEqual(result.status, 7, result)
        self.assertEqual(result.stderr.count("lockstep run: start "), 2, result)

    def test_what_is_not_here_is_named(self):
        for words, fragment in ((["--nnodes", "1:4"], "--nnodes"), (["--rdzv-endpoint", "node1:29400"], "--rdzv-endpoint: no option of lockstep launch; expected --master-addr HOST")):
            result = self.launch(*words, "true")
            self.assertEqual(result.status, 2, result)
            self.assertIn(fragment, result.stderr)

    def test_a_file_for_each_rank(self):
        self.need_open_mpi(4)  # 5.0.7: PMIX_ERR_EXISTS
        logs = self.scratch / "logs"
        result = self.launch("--nproc-per-node", 2, "--mpi-args", f"--output-filename {logs}", "sh", "-c", "echo rank=$RANK")
        self.assertEqual(result.status, 0, result)
        self.assertEqual([(logs / "1" / f"rank.{rank}" / "stdout").read_text() for rank in (0, 1)], ["rank=0\n", "rank=1\n"])


if __name__ == "__main__":
    try:
        hosts.check_available()
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    support.main()
