"""Jobs that are killed in all ways under `lockstep run`: each ends with the weights of one that nothing disturbed, bit
for bit, and leaves no process behind."""

import os
import random
import re
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402
from support import checkpoints, metrics, processes_with, program  # noqa: E402

STEPS = 24
TRAINING = ["--model", "mlp", "--dataset", "digits", "--limit-train", 640, "--limit-eval", 64, "--global-batch", 64, "--shards", 4,
            "--threads", 1, "--loaders", 0, "--epochs", 0, "--max-steps", STEPS, "--schedule", "cosine", "--eval-every", 0,
            "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 3, "--quiet"]


def environment(**extra):
    return support.launch_environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", ASAN_OPTIONS="detect_leaks=0", **extra)


def job(ranks, output, training=TRAINING):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks, *program("train_mnist", *training, "--output", output)]


def supervised(command, *options):
    return program("lockstep", "run", "--backoff", 0.1, *options, "--", *command)


class ChaosTest(support.SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"

    def start(self, command, environment_=None):
        return super().start(command, environment_ or environment())

    def undisturbed(self, training=TRAINING):
        output = self.scratch / "undisturbed"
        self.finish(self.start(job(2, output, training)), 100)
        return self.result(output)

    def result(self, output):
        newest = checkpoints(output)[-1]
        return newest.name, self.state(newest)["tensors"], metrics(output)

    def said(self):
        return (self.output / "logs" / "supervisor.log").read_text()

    def starts(self):
        return len(re.findall(r" start \d+: ", self.said()))


class FaultPoints(ChaosTest):
    """Where each kill falls is told by a name and a step."""

    def test_ten_kills(self):
        expected = self.undisturbed()
        faults = [(point, rank, at) for point, steps in {"step.begin": (0, 5, 13, 22), "step.gradients": (2, 11, 20)}.items()
                  for rank, at in zip((0, 1, 2, 0), steps)]
        faults += [(point, 0, at) for point, at in WRITES]
        self.assertEqual(len(faults), 10)
        words = [f"{point}:kill:rank={rank}:at={at}:once={self.scratch}/fired{i}" for i, (point, rank, at) in enumerate(faults)]
        result = self.finish(self.start(supervised(job(3, self.output), "--max-restarts", 4), environment(LOCKSTEP_FAULT=" ".join(words))), 160)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(len(list(self.scratch.glob("fired*"))), len(faults), result)
        self.assertEqual(self.starts(), len(faults) + 1, self.said())
        self.assertEqual(self.said().count("signal 9 (Killed)"), len(faults), self.said())
        for rank in (0, 1, 2):
            self.assertRegex(self.said(), rf"rank {rank} on host \S+: signal 9")
        self.assertEqual(self.result(self.output), expected)
        self.expect_no_process()
