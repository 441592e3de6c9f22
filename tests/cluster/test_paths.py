"""Every way to start sixteen ranks on two hosts of eight slots: each trains, and the weights are, bit for bit, those of four ranks on one host.
Where the subject is one option of mpirun, four ranks hold it, in a fraction of the time."""

import os
import re
import shutil

import paths
from paths import SCRIPTS, TOY, TRAIN, PathsTest
from support import checkpoints, metrics, program

ROOT = "--allow-run-as-root"
RUN_CLUSTER = SCRIPTS / "run_cluster.sh"


class Mpirun(PathsTest):
    """mpirun itself, with its options that people use."""

    FOUR = ["-n", 4, "-H", "node1:2,node2:2"]

    def mpirun(self, *words, variables=None):
        return self.on("node1", ["mpirun", ROOT, *words], variables)

    def each_way(self, *options):
        """With train.sh before the program and without it."""
        for wrapper in ([], [TRAIN]):
            with self.subTest(wrapper=wrapper):
                self.output = self.scratch / f"run{len(wrapper)}"
                self.expect_finished(self.mpirun(*options, *wrapper, *self.toy()))

    def test_a_hostfile_with_slots(self):
        self.each_way("-n", 16, "--hostfile", self.write("hosts", "node1 slots=8\nnode2 slots=8\n"))

    def test_a_hostfile_without_slots(self):
        """A host of which no slots are said has one for each of its cores; a mapping says more."""
        listed = self.write("hosts", "node1\nnode2\n")
        if os.cpu_count() < 8:
            result = self.mpirun("-n", 16, "--hostfile", listed, "hostname")
            self.assertNotEqual(result.status, 0, result)
            self.assertIn("not enough slots available", result.output)
        self.expect_finished(self.mpirun("--hostfile", listed, "--map-by", "ppr:8:node:oversubscribe", *self.toy()))

    def test_a_list_of_hosts_with_slots(self):
        self.each_way("-n", 16, "-H", "node1:8,node2:8")

    def test_a_list_of_hosts_without_slots(self):
        """Each mention of a host is one slot; with a mapping once is enough."""
        named = ",".join(["node1"] * 8 + ["node2"] * 8)
        self.expect_finished(self.mpirun("-H", named, *self.toy()))
        self.output = self.scratch / "mapped"
        self.expect_finished(self.mpirun("-H", "node1,node2", "--map-by", "ppr:8:node:oversubscribe", TRAIN, *self.toy()))

    def test_variables_for_all_hosts(self):
        """-x reaches the ranks of the other host, a variable alone does not."""
        variables = {"HERE_ALONE": "set", "PASSED_ON": "with blanks in it"}
        show = 'echo "rank=$OMPI_COMM_WORLD_RANK passed=$PASSED_ON named=$NAMED alone=$HERE_ALONE"; exec "$@"'
        result = self.mpirun("-n", 16, "-H", "node1:8,node2:8", "-x", "PASSED_ON", "-x", "NAMED=value", "sh", "-c", show, "sh", *self.toy(),
                             variables=variables)
        self.expect_finished(result)
        for rank in range(16):
            alone = "set" if rank < 8 else ""
            self.assertEqual(result.stdout.count(f"rank={rank} passed=with blanks in it named=value alone={alone}\n"), 1, result)

    def test_a_prefix(self):
        """The daemon is taken from there, and the ranks have it in front of their PATH."""
        self.need_open_mpi(4)  # 5 takes the daemon from there, and leaves PATH alone
        prefix = self.scratch / "prefix"
        prefix.mkdir()
        (prefix / "bin").symlink_to("/usr/bin")
        (prefix / "lib").symlink_to("/usr/lib")
        show = 'case $PATH in "$0"/bin:*) echo prefix=there;; esac; exec "$@"'
        result = self.mpirun("--prefix", prefix, *self.FOUR, "sh", "-c", show, prefix, *self.toy())
        self.expect_finished(result, size=4)
        self.assertGreaterEqual(result.stdout.count("prefix=there\n"), 2, result)

    def test_the_messages_of_ob1(self):
        self.expect_finished(self.mpirun("--mca", "pml", "ob1", *self.FOUR, *self.toy()), size=4)

    def test_without_docker0(self):
        """Both hosts have a bridge docker0 with one and the same address."""
        for host in self.hosts.names:
            for words in (["link", "add", "docker0", "type", "bridge"], ["address", "add", "172.17.0.1/16", "dev", "docker0"],
                          ["link", "set", "docker0", "up"]):
                self.succeed(self.hosts.command(host, ["ip", *words], "/"))
            self.addCleanup(self.run_command, self.hosts.command(host, ["ip", "link", "delete", "docker0"], "/"))
        exclude = ["--mca", "btl_tcp_if_exclude", "lo,docker0", "--mca", "oob_tcp_if_exclude", "lo,docker0"]
        self.expect_finished(self.mpirun(*exclude, *self.FOUR, *self.toy()), size=4)

    def test_a_program_that_only_this_host_has(self):
        self.need_open_mpi(4)  # that of 5.0.7 fails to copy the program: PMIX_ERR_EXISTS
        alone = "/dev/shm/train_toy"  # each host has a /dev/shm of its own
        self.succeed(self.hosts.command("node1", ["cp", program("train_toy")[0], alone], "/"))
        words = ["-n", 16, "-H", "node1:8,node2:8", alone, *self.toy()[1:]]
        without = self.mpirun(*words)
        self.assertNotEqual(without.status, 0, without)
        self.assertRegex(without.output, r"Node:\s+node2")
        # Open MPI 4.1 copies the program and then looks for it in its daemon's folder.
        binary = self.mpirun("--preload-binary", *words)
        if binary.status != 0:
            self.assertRegex(binary.output, r"Executable:\s+\./train_toy")
        self.output = self.scratch / "preloaded"
        here = ["sh", "-c", 'cd /dev/shm && exec "$@"', "sh", "mpirun", ROOT, "--preload-files", "train_toy", "--set-cwd-to-session-dir"]
        there = ["sh", "-c", 'chmod +x train_toy && exec ./train_toy "$@"', "sh"]
        self.expect_finished(self.on("node1", [*here, "-n", 16, "-H", "node1:8,node2:8", *there, *self.toy()[1:]]))

    def test_as_root(self):
        words = [*self.FOUR, *self.toy()]
        refused = self.on("node1", ["mpirun", *words])
        self.assertNotEqual(refused.status, 0, refused)
        self.assertIn("allow-run-as-root", refused.output)
        self.expect_finished(self.on("node1", ["mpirun", ROOT, *words]), size=4)

    def test_ssh_at_another_port(self):
        files, port = self.hosts.directory, 12345
        server = self.hosts.command("node2", [shutil.which("sshd"), "-f", files / "sshd_config", "-p", port], "/")
        self.succeed(server)
        listens = self.hosts.command("node2", ["sh", "-c", f"until ss -tln | grep -q :{port}; do sleep 0.05; done"], "/")
        self.succeed(listens)
        show = 'echo "rank=$OMPI_COMM_WORLD_RANK port=${SSH_CONNECTION##* }"; exec "$@"'
        result = self.mpirun("--mca", "plm_rsh_args", f"-F {files}/ssh_config -p {port}", *self.FOUR,
                             "sh", "-c", show, "sh", *self.toy())
        self.expect_finished(result, size=4)
        self.assertEqual(result.stdout.count(f" port={port}\n"), 2, result)

    def test_a_log_for_each_rank(self):
        """As MindSpore's users call it: mpirun -n 8 --output-filename log_output --merge-stderr-to-stdout."""
        self.need_open_mpi(4)  # that of 5.0.7 writes nothing: PMIX_ERR_EXISTS
        result = self.mpirun(*self.FOUR, "--output-filename", self.scratch / "log_output", "--merge-stderr-to-stdout",
                             *self.toy())
        self.expect_finished(result, size=4)
        logs = sorted((self.scratch / "log_output").rglob("stdout"))
        self.assertEqual([log.parent.name for log in logs], [f"rank.{rank}" for rank in range(4)])
        self.assertIn("4 ranks on 2 hosts", logs[0].read_text())


class Launchers(PathsTest):
    """One start of each node's ranks, without ssh; habits of torchrun, horovodrun and MindSpore."""

    NODE = ["--nnodes", 2, "--nproc-per-node", 8, "--master-addr", "node1"]

    def launch(self, *options):
        """The same command on both hosts; returns what they gave."""
        secret = self.write("secret", "the secret of these tests\n", 0o600)
        nodes = [self.begin_on(host, program("lockstep", "launch", *self.NODE, "--node-rank", i, "--secret-file", secret, *options, *self.toy()))
                 for i, host in enumerate(self.hosts.names)]
        results = [self.finish(node) for node in nodes]
        self.assertEqual([r.status for r in results], [0, 0], "\n".join(map(str, results)))
        return results

    def test_torchrun(self):
        self.expect_same_bits(self.launch()[0].output)

    def test_msrun(self):
        """--worker_num=16 --local_worker_num=8 --log_dir=DIR --join=True"""
        self.need_open_mpi(4)  # as in Mpirun.test_a_log_for_each_rank
        logs = self.scratch / "worker_logs"
        results = self.launch("--mpi-args", f"--output-filename {logs}")
        self.expect_same_bits(results[0].output)
        self.assertEqual(sorted(log.parent.name for log in logs.rglob("stdout")), [f"rank.{rank:02}" for rank in range(16)])

    def test_horovodrun(self):
        for where in (["-H", "node1:8,node2:8"], ["--hostfile", self.hosts.hostfile]):
            with self.subTest(where=where):
                self.output = self.scratch / where[0]
                self.expect_finished(self.on("node1", program("lockstep", "launch", "-n", 16, *where, *self.toy())))

    def test_the_node_wrapper(self):
        words = ["mpirun", ROOT, "-H", "node1:1,node2:1", "--bind-to", "none", "--map-by", "slot", "-x", "LOCKSTEP_TOOL",
                 TRAIN, "--ranks-per-node", 8, *self.toy()]
        self.expect_finished(self.on("node1", words, {"LOCKSTEP_TOOL": program("lockstep")[0]}))


class RunCluster(PathsTest):
    """scripts/run_cluster.sh: in the background, with a run folder, a log, and an end in good order."""

    LONG = [*TOY[:TOY.index("--max-steps")], "--epochs", 100000, "--eval-every", 0, *TOY[TOY.index("--shards"):]]
    VARIABLES = {"LOCKSTEP_TOOL": program("lockstep")[0]}

    def call(self, *words, **variables):
        return self.on("node1", [RUN_CLUSTER, *words], {**self.VARIABLES, **variables})

    def start_toy(self, *words, options=TOY, **variables):
        """Starts a job that has to start, and returns what was said of it."""
        result = self.call("-o", self.output, *words, "--", *options, **variables)
        self.assertEqual(result.status, 0, result)
        said = re.search(r"started, process (\d+)\n  follow:  tail -f (\S+)\n  stop:    kill (\d+) ", result.stdout)
        self.assertTrue(said, result)
        self.assertEqual((said[1], said[2]), (said[3], str(self.output / "train.log")))
        return result.stdout, int(said[1])

    def log_at_end(self):
        """train.log, when its last line says that the job has ended."""
        self.succeed(["sh", "-c", f"until grep -qs 'run_cluster.sh: ended' {self.output}/train.log; do sleep 0.05; done"])
        return (self.output / "train.log").read_text()

    def test_hostfile_list_and_rank_table(self):
        table = self.write("table.json", self.succeed(program("lockstep", "hosts", "-H", "node1:8,node2:8", "--to", "rank-table")).stdout)
        (self.scratch / "data").mkdir()
        for i, listed in enumerate((self.hosts.hostfile, table)):
            with self.subTest(listed=listed):
                self.output = self.scratch / f"run{i}"
                said, _ = self.start_toy(program("train_toy")[0], "data", listed)
                self.assertIn("16 ranks of ", said)
                self.assertIn(f"run:     {self.output}, new\n", said)
                log = self.log_at_end()
                self.assertTrue(log.endswith("run_cluster.sh: ended with status 0\n"), log)
                self.expect_same_bits(log)
                self.assertFalse((self.output / "pid").exists())

    def test_stop_and_go_on(self):
        toy = program("train_toy")[0]
        _, process = self.start_toy(toy, "-", self.hosts.hostfile, options=self.LONG)
        self.succeed(["sh", "-c", f"until grep -qs loss {self.output}/metrics.jsonl; do sleep 0.05; done"])
        running = self.call("--resume", self.output, toy, "-", self.hosts.hostfile)
        self.assertEqual(running.status, 2, running)
        self.assertIn("has not ended: process ", running.stderr)
        self.succeed(self.hosts.command("node1", ["kill", process], "/"))
        log = self.log_at_end()
        self.assertIn("run_cluster.sh: ended with status 75 (stopped with a checkpoint; ", log)
        stopped = self.state(checkpoints(self.output)[-1])["metadata"]["step"]
        self.assertEqual(stopped, metrics(self.output)[-1][0])
        # The same with fewer ranks, to a step beyond.
        again = self.call("--resume", self.output, "-n", 4, toy, "-", self.hosts.hostfile, "--", *self.LONG, "--max-steps", stopped + 3)
        self.assertEqual(again.status, 0, again)
        self.assertIn("4 ranks of ", again.stdout)
        self.succeed(["sh", "-c", f"until grep -qs 'ended with status 0' {self.output}/train.log; do sleep 0.05; done"])
        self.assertEqual(metrics(self.output)[-1][0], stopped + 3)

    def test_this_machine_alone(self):
        """Without a hostfile; settings reach the ranks, --mpi-args mpirun."""
        self.start_toy("-n", 4, "--mpi-args", "--tag-output -x 'SETTING=two words'", program("train_toy")[0], "-", LOCKSTEP_VERBOSE=1, OMP_NUM_THREADS=1)
        log = self.log_at_end()
        self.assertEqual(log.count("4 ranks on 1 host"), 1, log)
        self.assertEqual(len(re.findall(r"train.sh: node1: rank \d of 4, local \d of 4: 1 threads", log)), 4, log)
        self.assertIn("SETTING=two\\ words", (self.output / "command").read_text())
        self.assertEqual(self.found_in(self.output), self.reference(TOY))

    def test_says_what_it_would_do(self):
        result = self.call("--dry-run", "-i", "eth0", "-p", 12345, "-o", self.output, program("train_toy")[0], "-", self.hosts.hostfile)
        self.assertEqual(result.status, 0, result)
        for text in ("16 ranks of ", "data:    none", "--mca btl_tcp_if_include eth0 ", "plm_rsh_args -p\\ 12345 ", "-x LOCKSTEP_INTERFACE "):
            self.assertIn(text, result.stdout)
        self.assertFalse(self.output.exists())

    def test_what_is_wrong_is_said(self):
        toy, data = program("train_toy")[0], self.scratch
        self.write("wrong", "node1:8\n")
        rows = [([], 2, "expected PROGRAM DATA_DIR"), (["./none", data], 2, "'./none' is not an executable file"),
                ([toy, "none"], 2, "the data directory 'none' is not a folder"), ([toy, data, "none"], 2, "the hostfile 'none' cannot be read"),
                ([toy, data, "wrong"], 1, "expected 'node1 slots=8'"), (["-o", data, toy, data], 2, "exists; expected a new folder"),
                (["-n", "many", toy, data], 2, "the number of ranks is 'many'"), (["--many", toy, data], 2, "unknown option '--many'")]
        for words, status, says in rows:
            with self.subTest(says):
                result = self.call(*words)
                self.assertEqual(result.status, status, result)
                self.assertIn(says, result.stderr)

    def test_a_job_that_cannot_start_says_so_at_once(self):
        result = self.call("-n", 2, "-o", self.output, program("train_toy")[0], "-", "--", "--no-such-option")
        self.assertIn("--no-such-option", result.stderr + (self.log_at_end() if result.status == 0 else ""), result)


if __name__ == "__main__":
    paths.main()
