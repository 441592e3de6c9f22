"""Recommenders and models of sequences over two hosts: the bits of one rank, with tables on all ranks, in bf16, over a stop in the middle of an epoch and a kill."""

import sys
from pathlib import Path

import paths
from test_cluster import RANK_SETTINGS
from test_launcher import LauncherTest

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402
from support import checkpoints, metrics, program, ranks  # noqa: E402

ALIKE = ["--epochs", 2, "--shards", 16, "--threads", 1, "--loaders", 0, "--log-every", 1, "--schedule", "constant", "--warmup-epochs", 0]


class ProgramTest(LauncherTest):
    SLOTS = 8

    def found(self, output):
        """The state of the newest checkpoint, losses as they are written, and the last evaluation."""
        folder = self.scratch / output
        return self.state(checkpoints(folder)[-1])["tensors"], metrics(folder), metrics(folder, "eval")[-1]


CLICKS = ["--click-eval-samples", 100, "--click-fields", 3, "--click-ids", 40, "--dim", 4, "--bottom", "8", "--top", "8"]


class Recommenders(ProgramTest):
    def command(self, output, *more):
        return program("train_recsys", *CLICKS, "--click-samples", 480, "--global-batch", 96, *ALIKE, "--output", self.scratch / output, *more)

    def test_two_by_eight_with_sharded_tables_computes_what_one_rank_does(self):
        self.succeed(ranks(1, self.command("one")))
        for way in ("mpirun", "launch"):
            command = self.command(way, "--shard-tables")
            results = ([self.mpirun(self.hosts, 16, command)] if way == "mpirun" else
                       self.finish_all(*(self.node(rank, command, ranks=8) for rank in (0, 1))))
            self.assertEqual({result.status for result in results}, {0}, "\n".join(map(str, results)))
            self.assertEqual(results[0].output.count("16 ranks on 2 hosts"), 1, results[0])
            self.assertEqual(self.found(way), self.found("one"), way)


class Programs(ProgramTest):
    def programs(self):
        data = self.scratch / "lorenz.h5"
        self.succeed(program("lockstep-data", "generate", "lorenz", "--samples", 90, "--past", 16, "--future", 4, "--seed", 1, "--output", data))
        return {
            "train_gpt": ["--layers", 1, "--heads", 2, "--width", 16, "--context", 24, "--corpus-samples", 80, "--limit-eval", 5, "--dropout", 0.1],
            "train_images": ["--dataset", "digits", "--limit-train", 80, "--limit-eval", 32, "--model", "vit_mini_cifar", "--auto-augment", "ra",
                             "--mixup-alpha", 0.8, "--cutmix-alpha", 1, "--random-erase", 0.25, "--optimizer", "adamw", "--no-decay", "encoder.pos_embedding"],
            "train_fields": ["--dataset", "hdf5", "--files", data, "--series", "--inputs", "past", "--targets", "future", "--model", "encoder", "--width", 16,
                             "--limit-train", 80, "--optimizer", "adamw"],
            "train_recsys": [*CLICKS, "--click-samples", 80, "--shard-tables"],
        }

    def test_two_hosts_a_stop_in_an_epoch_and_a_kill_change_no_bit(self):
        for name, options in self.programs().items():
            def command(output, *more):
                return program(name, *options, "--global-batch", 16, "--precision", "bf16", *ALIKE, "--output", self.scratch / name / output, *more)  # noqa: B023
            with self.subTest(name):
                self.succeed(ranks(1, command("whole")))
                stopped = self.mpirun(self.hosts, 4, command("parts", "--max-steps", 3, "--checkpoint-every-steps", 1), limit=support.LIMIT)
                self.assertEqual(stopped.status, 0, stopped)
                fault = f"step.begin:kill:rank=1:at=8:once={self.scratch}/{name}.fired"
                job = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", 3, *command("parts", "--checkpoint-every-steps", 2)]
                self.succeed(program("lockstep", "run", "--backoff", 0.1, "--", *job),
                             environment=support.launch_environment(**{k: str(v) for k, v in RANK_SETTINGS.items()}, LOCKSTEP_FAULT=fault))
                self.assertTrue((self.scratch / f"{name}.fired").exists())
                self.assertEqual(self.found(f"{name}/parts"), self.found(f"{name}/whole"))


if __name__ == "__main__":
    paths.main()
