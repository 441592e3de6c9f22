"""For tests of the ways to start sixteen ranks on two hosts: hosts that a class shares, and what all ways have to compute."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hosts
from test_cluster import ONCE, ClusterTest

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402
from support import SOURCE, checkpoints, metrics, program, ranks  # noqa: E402

SCRIPTS = SOURCE / "scripts"
TRAIN = SCRIPTS / "train.sh"
TOY = ["--dataset", "digits", "--limit-train", 96, "--limit-eval", 32, "--global-batch", 32, "--max-steps", 3, "--checkpoint-every-steps", 3,
       "--shards", 16, *ONCE]


class PathsTest(ClusterTest):
    HOSTS, SLOTS = 2, 8

    @classmethod
    def setUpClass(cls):
        cls.hosts = hosts.Cluster(cls.HOSTS, slots=cls.SLOTS)
        cls.addClassCleanup(cls.hosts.close)
        cls.kept = Path(tempfile.mkdtemp(prefix="lockstep-paths-"))
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        cls.references = {}

    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"

    def tearDown(self):
        self.hosts.sweep()

    def settings(self, variables=None):
        found = {**hosts.MACHINE, **hosts.arguments_of_ssh(f"-F {self.hosts.directory}/ssh_config"), **(variables or {})}
        return [f"{name}={value}" for name, value in found.items() if value is not None]

    def words_on(self, host, words, variables=None):
        return self.hosts.command(host, ["env", *self.settings(variables), *words], self.scratch)

    def on(self, host, words, variables=None):
        """Runs a command on a host to its end, in this test's folder; a variable that is None is not set."""
        done = self.hosts.run_limited(self.words_on(host, words, variables), support.LIMIT, subprocess.PIPE)
        return support.Result(done.returncode, done.stdout, done.stderr, 0)

    def begin_on(self, host, words, variables=None):
        return self.start(self.words_on(host, words, variables))

    def toy(self, *more):
        return program("train_toy", *TOY, "--output", self.output, *more)

    def found_in(self, output):
        """Losses and weights of a run."""
        return metrics(output), self.state(checkpoints(output)[-1])["tensors"]

    def reference(self, options):
        """Losses and weights of four ranks on this machine, computed once for a class."""
        key = json.dumps(list(map(str, options)))
        if key not in self.references:
            folder = self.kept / f"reference{len(self.references)}"
            result = self.succeed(ranks(4, program("train_toy", *options, "--output", folder)))
            self.assertEqual(result.output.count("4 ranks on 1 host"), 1, result)
            self.references[key] = self.found_in(folder)
            self.assertGreater(len(self.references[key][0]), 2)
        return self.references[key]

    def expect_same_bits(self, text, output=None, options=TOY, size=16):
        """`text` is what a job of so many ranks printed: it was one job, on two hosts, and computed what four ranks on one do."""
        self.assertEqual(text.count(f"{size} ranks on 2 hosts"), 1, text)
        found, expected = self.found_in(output or self.output), self.reference(options)
        self.assertEqual(found[0], expected[0], text)
        self.assertEqual(found[1], expected[1], text)

    def expect_finished(self, result, output=None, options=TOY, size=16):
        self.assertEqual(result.status, 0, result)
        self.expect_same_bits(result.output, output, options, size)

    def write(self, name, text, mode=0o644):
        path = self.scratch / name
        path.write_text(text)
        path.chmod(mode)
        return path


def main(*tools):
    """Runs the classes that the command line names, or says why that cannot be."""
    try:
        hosts.check_available()
        for tool, how in tools:
            if shutil.which(tool) is None:
                raise hosts.Unavailable(f"{tool} is not installed ({how})")
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    support.main()
