"""Faults of hosts and links under `lockstep run`: the job goes on by itself and ends with the bits of a job that nothing
disturbed. Times from a fault to the next trained step are printed."""

import re
import sys
import time
from pathlib import Path

import hosts
from test_cluster import RANK_SETTINGS, ClusterTest  # which makes the next importable
import support
from support import checkpoints, metrics, program, ranks

STEPS = 120
TRAINING = ["--model", "mlp", "--dataset", "digits", "--limit-train", 640, "--limit-eval", 64, "--global-batch", 64, "--shards", 4,
            "--threads", 1, "--loaders", 0, "--epochs", 0, "--max-steps", STEPS, "--eval-every", 0, "--log-every", 1,
            "--checkpoint-every", 0, "--checkpoint-every-steps", 2, "--quiet"]


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended


class FaultTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"
        self.hosts = self.cluster(2)

    def tearDown(self):
        self.hosts.close()
        self.expect_no_process()

    def start_job(self, *options):
        """Four ranks on two hosts, a step a second until hurry(); returns when the fifth is done."""
        settings = dict(RANK_SETTINGS, LOCKSTEP_FAULT=f"step.begin:sleep=1:until={self.scratch}/hurry")
        job = self.hosts.mpirun_words(4, program("train_mnist", *TRAINING, "--output", self.output), environment=settings, keepalive=False)
        process = self.start(self.hosts.command("node1", program("lockstep", "run", "--probe-timeout", 30, *options, "--", *job)))
        self.wait_for(process, lambda: self.last_step() >= 5)
        return process

    def hurry(self):
        """All has happened that was to happen while the job runs."""
        (self.scratch / "hurry").touch()

    def wait_for(self, process, condition, limit=support.LIMIT):
        deadline = time.monotonic() + limit
        while not condition() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if not condition():
            process.terminate()
            self.fail(f"not seen within {limit} s\n{self.finish(process)}")

    def last_step(self):
        try:
            return metrics(self.output)[-1][0]
        except (OSError, IndexError, AttributeError):  # not there yet, or a line half written
            return 0

    def said(self):
        return (self.output / "logs" / "supervisor.log").read_text()

    def started(self, number):
        return f" start {number}: " in self.said()

    def time_to_next_step(self, process, fault):
        """Seconds from the fault to the first step of the next start, which has to come by itself."""
        began, name = time.monotonic(), fault.__name__
        fault()
        self.wait_for(process, lambda: self.started(2))
        noticed = time.monotonic() - began
        files = {path: path.stat().st_mtime for path in [self.output / "metrics.jsonl"]}
        self.wait_for(process, lambda: any(path.stat().st_mtime > before for path, before in files.items()) and self.trained_since_start())
        print(f"{name}: started again after {noticed:.1f} s, first step after {time.monotonic() - began:.1f} s", flush=True)

    def trained_since_start(self):
        """The newest start of the program has trained a step: its metrics count seconds from the start."""
        lines = (self.output / "metrics.jsonl").read_text().splitlines()
        seconds = [float(found.group(1)) for line in lines if (found := re.search(r'"seconds":([0-9.e+-]+)', line))]
        return len(seconds) > 1 and any(after < before for before, after in zip(seconds, seconds[1:]))

    def expect_undisturbed_result(self, process):
        self.hurry()
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        output = self.scratch / "undisturbed"
        self.succeed(ranks(2, program("train_mnist", *TRAINING, "--output", output)))
        self.assertTrue(checkpoints(output) and checkpoints(self.output), f"checkpoints of both runs, expected some\n{result}")
        expected, got = checkpoints(output)[-1], checkpoints(self.output)[-1]
        self.assertEqual((got.name, self.state(got)["tensors"]), (expected.name, self.state(expected)["tensors"]))
        self.assertEqual(metrics(self.output), metrics(output))


class HostCrashes(FaultTest):
    def test_it_is_left_out(self):
        process = self.start_job()

        def host_crash():
            self.hosts.kill("node2")

        variables = [environment_of(pid) for pid in support.processes_with(str(self.output))]
        of_ranks = [v for v in variables if any(text.startswith(b"OMPI_COMM_WORLD_RANK=") for text in v)]
        self.assertEqual(len(of_ranks), 4)
        for v in of_ranks:  # what is left of a job on a host is found by this
            self.assertTrue(any(text.startswith(b"OMPI_LOCKSTEP_JOB=") for text in v), v)
        self.time_to_next_step(process, host_crash)
        self.assertRegex(self.said(), r"start 2: 2 ranks on node1, without node2 \(.+\); newest checkpoint: step \d+")
        self.expect_undisturbed_result(process)


class LinkGoesSilent(FaultTest):
    def test_the_host_is_left_out_and_taken_back(self):
        process = self.start_job("--rejoin", 0.05)

        def silent_link():
            self.hosts.link("node2", "down")

        self.time_to_next_step(process, silent_link)
        self.assertRegex(self.said(), r"start 2: 2 ranks on node1, without node2 ")
        self.hosts.link("node2", "up")
        self.wait_for(process, lambda: "node2 answers again" in self.said() and self.started(3))
        self.assertRegex(self.said(), r"start 3: 4 ranks on node1, node2; newest")
        self.expect_undisturbed_result(process)


class LinkLosesPackets(FaultTest):
    def test_four_seconds_are_ridden_out(self):
        process = self.start_job()
        self.hosts.loss("node2", 100)
        time.sleep(4)
        self.hosts.loss("node2", 0)
        healed, before = time.monotonic(), self.last_step()
        self.wait_for(process, lambda: self.last_step() > before + 1)  # one more may have been on its way
        print(f"loss of 4 s: next step {time.monotonic() - healed:.1f} s after its end", flush=True)
        self.expect_undisturbed_result(process)
        self.assertFalse(self.started(2), self.said())


if __name__ == "__main__":
    try:
        hosts.check_available()
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    support.main()
