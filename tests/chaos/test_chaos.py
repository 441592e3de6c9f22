"""Jobs that are killed in all ways under `lockstep run`: each ends with the weights of one that nothing disturbed, bit
for bit, and leaves no process behind. And two jobs whose outputs are swapped under them: neither finds its way into the other's run."""

import os
import random
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402
from support import checkpoints, metrics, processes_with, program  # noqa: E402

STEPS = 24
TRAINING = ["--model", "mlp", "--dataset", "digits", "--limit-train", 640, "--limit-eval", 64, "--global-batch", 64, "--shards", 4,
            "--threads", 1, "--loaders", 0, "--epochs", 0, "--max-steps", STEPS, "--schedule", "cosine", "--eval-every", 0,
            "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 3, "--quiet"]


# Tables of which some checkpoints have the changed rows alone, written by way of a file, and a vocabulary that grows and forgets.
# A step takes a few milliseconds: with as many steps as others, most runs of a quiet machine were over before a kill.
CLICK_STEPS = 10 * STEPS
CLICKS = ["--click-samples", 960, "--click-eval-samples", 64, "--click-fields", 3, "--click-ids", 900, "--click-wide", "--vocabulary", 400,
          "--evict-after", 5, "--dim", 4, "--top", "8", "--bottom", "8", "--global-batch", 32, "--shards", 4, "--threads", 1, "--loaders", 0,
          "--epochs", 0, "--max-steps", CLICK_STEPS, "--schedule", "cosine", "--eval-every", 0, "--log-every", 1, "--checkpoint-every", 0,
          "--checkpoint-every-steps", 3, "--full-tables-every", 3, "--table-copy-mb", 0, "--quiet"]


def environment(**extra):
    return support.launch_environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", ASAN_OPTIONS="detect_leaks=0", **extra)


def job(ranks, output, training=TRAINING, name="train_mnist"):
    return [*support.mpirun(ranks), *program(name, *training, "--output", output)]


def supervised(command, *options):
    return program("lockstep", "run", "--backoff", 0.1, *options, "--", *command)


class ChaosTest(support.SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"

    def start(self, command, environment_=None):
        return super().start(command, environment_ or environment())

    def undisturbed(self, training=TRAINING, name="undisturbed"):
        output = self.scratch / name
        result = self.finish(self.start(job(2, output, training)))
        self.assertEqual(result.status, 0, result)
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
        result = self.finish(self.start(supervised(job(3, self.output)), environment(LOCKSTEP_FAULT=" ".join(words))), 2 * support.LIMIT)
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
    PROGRAM = "train_mnist"
    STEPS = STEPS

    def job(self, ranks):
        return job(ranks, self.output)

    def ranks_and_launcher(self):
        ranks, launcher = {}, None
        for pid in processes_with(str(self.output)):
            try:
                name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
                rank = support.rank_of(pid)
            except OSError:
                continue  # it has ended meanwhile
            if name == self.PROGRAM and rank is not None:
                ranks[rank] = pid
            elif name in support.LAUNCHERS:
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
        number, deadline, left = random_.randrange(4), time.monotonic() + support.LIMIT, self.unfinished()
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
        process = self.start(supervised(self.job(ranks), "--max-restarts", 20))
        while sum(done.values()) < kills:
            kind, pid = self.victim(random_, process)
            if pid is None:
                break
            try:
                os.kill(pid, signal.SIGKILL)
                done[kind] += 1
            except ProcessLookupError:
                pass
        result = self.finish(process, 2 * support.LIMIT)
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
        print(f"seed {seed}: {sum(total.values())} kills in {run} runs ({total}), {self.STEPS} steps each: weights and metrics bit for bit "
              "those of the undisturbed run", flush=True)


class RandomKillsOfTables(RandomKills):
    """The same with sparse tables, which lie on one rank each in every other run."""
    PROGRAM = "train_recsys"
    STEPS = CLICK_STEPS

    def job(self, ranks):
        return job(ranks, self.output, [*CLICKS, *(["--shard-tables"] if ranks % 2 else [])], self.PROGRAM)

    def undisturbed(self):
        output = self.scratch / "undisturbed"
        result = self.finish(self.start(job(2, output, CLICKS, self.PROGRAM)))
        self.assertEqual(result.status, 0, result)
        return self.result(output)


class SwappedOutputs(ChaosTest):
    """Two jobs that differ in their seed, so that each checkpoint and each loss tells whose it is, and folders that change places under them. A
    job may follow its folder, go on under a name of its own, or stop with a message: what it may not do is write into the other's run."""
    SEEDS = {"first": 1, "second": 2}

    def training(self, name):
        return [*TRAINING, "--max-steps", self.steps, "--checkpoint-every-steps", self.every, "--keep", 0, "--seed", self.SEEDS[name]]

    def learn_what_is_whose(self, steps, every):
        self.steps, self.every, self.weights, self.owner = steps, every, {}, {}
        for name in self.SEEDS:
            _, self.weights[name], losses = self.undisturbed(self.training(name), f"undisturbed-{name}")
            self.owner.update(dict.fromkeys(losses, name))
        self.assertEqual(len(self.owner), 2 * steps, "no loss is the same in both")
        self.trained = self.scratch / "trained"
        self.trained.mkdir()

    def begin(self, held_at, options=None):
        """Both jobs, when both have come to that step, before which they are held until go() is called."""
        jobs = {}
        for name in self.SEEDS:
            command = job(2, self.trained / name, self.training(name))
            jobs[name] = self.start(supervised(command, *options) if options else command,
                                    environment(LOCKSTEP_FAULT=f"step.begin:sleep=900:at={held_at}:until={self.trained}/go"))
        for name, process in jobs.items():
            file = self.trained / name / "metrics.jsonl"
            self.wait_for(process, lambda: file.exists() and file.read_text().count("\n") == held_at - 1)
        return jobs

    def go(self):
        (self.trained / "go").touch()

    def swap(self):
        """As a user's slip would: three moves, and between them a path leads nowhere, so that a job may have made it again."""
        first, second = (self.trained / name for name in self.SEEDS)
        away = self.trained / f"away{len(list(self.trained.iterdir()))}"
        for source, target in ((first, away), (second, first), (away, second)):
            if source.exists() and not target.exists():
                source.rename(target)

    def owners(self, file):
        if file.suffix == ".h5":
            seed = self.state(file)["metadata"]["seed"]
            return {name for name in self.SEEDS if self.SEEDS[name] == seed}
        return {self.owner[record] for record in support.losses(file)}

    def runs(self):
        """Who wrote into each run: a folder's checkpoints and metrics; those that a later start has set aside apart."""
        found = {}
        for file in sorted([*self.trained.rglob("step-*.h5"), *self.trained.rglob("metrics*.jsonl")]):
            part = file.parent if file.suffix == ".h5" else file  # checkpoints or metrics.jsonl; with a number where they were set aside
            run = part.parent if part.name in ("checkpoints", "metrics.jsonl") else part
            found.setdefault(str(run.relative_to(self.trained)), set()).update(self.owners(file))
        return found

    def expect_each_its_own(self, jobs):
        results = {name: self.finish(process, 2 * support.LIMIT) for name, process in jobs.items()}
        self.expect_no_process()
        runs = self.runs()
        said = "\n".join([f"runs: {runs}", *(f"{name}: {result}" for name, result in results.items()),
                          *(f"{log}:\n{log.read_text()[-3000:]}" for log in self.trained.rglob("rank-0000.log"))])
        for run, owners in runs.items():
            self.assertEqual(len(owners), 1, f"{run} holds what both wrote\n{said}")
        for name, result in results.items():
            if result.status == 0:
                last = [self.state(file) for file in self.trained.rglob(f"step-{self.steps:010}.h5")]
                mine = [state["tensors"] for state in last if state["metadata"]["seed"] == self.SEEDS[name]]
                self.assertEqual(mine, [self.weights[name]] * len(mine), said)
                self.assertTrue(mine, f"{name} has left no weights\n{said}")
            else:
                self.assertIn(str(self.trained / name), result.output, f"{name} does not say what stopped it\n{said}")
        return {name: result.status for name, result in results.items()}

    def test_once_in_mid_run(self):
        self.learn_what_is_whose(STEPS, 3)
        jobs = self.begin(6)
        for name, process in jobs.items():
            self.wait_for(process, lambda: [p.name for p in checkpoints(self.trained / name)] == [f"step-{3:010}.h5"])
        self.swap()
        self.go()
        print(self.expect_each_its_own(jobs), flush=True)

    def test_at_any_time(self):
        """LOCKSTEP_CHAOS_SWAPS times (3 unless set): of each pair of jobs once before the first checkpoint, then at instants drawn from a seed. Every
        other pair runs under `lockstep run`, and a rank of it is killed."""
        wanted, seed = int(os.environ.get("LOCKSTEP_CHAOS_SWAPS", 3)), int(os.environ.get("LOCKSTEP_CHAOS_SEED", 1))
        self.learn_what_is_whose(297, 9)  # not the end of an epoch, after which a run may go on with another seed
        random_, swaps, pairs = random.Random(seed), 0, 0
        while swaps < wanted:
            pairs += 1
            jobs, done = self.begin(2, ["--max-restarts", 3] if pairs % 2 == 0 else None), 1
            self.swap()
            self.go()
            while swaps + done < wanted and done < 5:
                time.sleep(random_.expovariate(1 / 0.3))
                if any(process.poll() is not None for process in jobs.values()):
                    break
                if pairs % 2 == 0 and done == 1:
                    self.kill_a_rank(random_.choice(list(self.SEEDS)))
                self.swap()
                done += 1
            print(f"pair {pairs}: {done} swaps, {self.expect_each_its_own(jobs)}", flush=True)
            swaps += done
            self.trained.rename(self.scratch / f"trained{pairs}")
            self.trained.mkdir()
        print(f"seed {seed}: {swaps} swaps under {pairs} pairs of jobs: no run holds what another wrote", flush=True)

    def kill_a_rank(self, name):
        for pid in processes_with(str(self.trained / name)):
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "train_mnist":
                    return os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended meanwhile


if __name__ == "__main__":
    support.main()
