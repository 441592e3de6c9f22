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
    # A write goes on beside the steps after its own and is over before the next: in between no other fault is set.
    FAULTS = [("step.begin", 1, 1), ("step.gradients", 2, 2), ("checkpoint.snapshot", 0, 3), ("step.begin", 2, 7), ("checkpoint.write", 0, 9),
              ("checkpoint.rename", 0, 12), ("step.gradients", 1, 17), ("checkpoint.prune", 0, 18), ("step.begin", 0, 22), ("step.gradients", 1, 23)]

    def test_ten_kills(self):
        expected = self.undisturbed()
        words = [f"{point}:kill:rank={rank}:at={at}:once={self.scratch}/fired{i}" for i, (point, rank, at) in enumerate(self.FAULTS)]
        result = self.finish(self.start(supervised(job(3, self.output)), environment(LOCKSTEP_FAULT=" ".join(words))), 250)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(len(list(self.scratch.glob("fired*"))), len(self.FAULTS), result)
        self.assertEqual(self.starts(), len(self.FAULTS) + 1, self.said())
        for rank in (0, 1, 2):
            self.assertEqual(len(re.findall(rf"rank {rank} on host \S+: signal 9", self.said())),
                             sum(fault[1] == rank for fault in self.FAULTS), self.said())
        self.assertEqual(self.result(self.output), expected)
        self.expect_no_process()


class RandomKills(ChaosTest):
    """SIGKILL at instants drawn from a seed: of a rank, of mpirun, or of rank 0 while it writes a checkpoint. LOCKSTEP_CHAOS_KILLS
    of them (3 unless set), five to a run, each at 1 to 4 ranks."""

    def ranks_and_launcher(self):
        ranks, launcher = {}, None
        for pid in processes_with(str(self.output)):
            try:
                name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended meanwhile
            numbers = [int(v.split(b"=")[1]) for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
            if name == "train_mnist" and numbers:
                ranks[numbers[0]] = pid
            elif name == "orterun":
                launcher = pid
        return ranks, launcher

    def unfinished(self):
        """Files that are no checkpoints yet, by name and inode: a killed writer's stays for a while."""
        try:
            with os.scandir(self.output / "checkpoints") as entries:
                return {(e.name, e.inode()) for e in entries if not (e.name.startswith("step-") and e.name.endswith(".h5"))}
        except OSError:
            return set()

    def victim(self, random_, process):
        """A kind, and the process to kill now; None when the job was over first."""
        kind = random_.choice(["rank", "mpirun", "write"])
        instant = time.monotonic() + random_.expovariate(1 / 0.7)
        number, deadline, left = random_.randrange(4), time.monotonic() + 60, self.unfinished()
        while process.poll() is None and time.monotonic() < deadline:
            if time.monotonic() >= instant and (kind != "write" or self.unfinished() - left):
                ranks, launcher = self.ranks_and_launcher()
                if kind == "mpirun" and launcher:
                    return kind, launcher
                if ranks and kind != "mpirun":
                    return kind, ranks.get(0 if kind == "write" else number, next(iter(ranks.values())))
            time.sleep(0.001)
        return kind, None

    def one_run(self, random_, kills, ranks):
        done = dict.fromkeys(("rank", "mpirun", "write"), 0)
        process = self.start(supervised(job(ranks, self.output), "--max-restarts", 20))
        while sum(done.values()) < kills:
            kind, pid = self.victim(random_, process)
            if pid is None:
                break
            try:
                os.kill(pid, signal.SIGKILL)
                done[kind] += 1
            except ProcessLookupError:
                pass
        result = self.finish(process, 250)
        self.assertEqual(result.status, 0, result)
        return done

    def test_same_weights(self):
        wanted, seed = int(os.environ.get("LOCKSTEP_CHAOS_KILLS", 3)), int(os.environ.get("LOCKSTEP_CHAOS_SEED", 1))
        random_, expected, total, run = random.Random(seed), self.undisturbed(), {}, 0
        while sum(total.values()) < wanted:
            self.assertLess(run, wanted + 3, f"most runs were over before a kill: {total}")
            run += 1
            self.output = self.scratch / f"run{run}"
            done = self.one_run(random_, min(5, wanted - sum(total.values())), 1 + run % 4)
            self.assertEqual(self.result(self.output), expected, f"run {run}, seed {seed}\n{self.said()}")
            self.expect_no_process()
            total = {kind: total.get(kind, 0) + count for kind, count in done.items()}
            print(f"run {run}: {done}", flush=True)
        print(f"seed {seed}: {sum(total.values())} kills in {run} runs ({total}), {STEPS} steps each: weights and metrics bit for bit "
              "those of the undisturbed run", flush=True)


if __name__ == "__main__":
    unittest.main()
