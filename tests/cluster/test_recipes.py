"""The recipes of models/recipes on two hosts with eight ranks each, shortened, and what such a job leaves in its logs."""

import json
import math
import re
import sys
from pathlib import Path

import paths
from test_cluster import ClusterTest

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import recipes  # noqa: E402
from support import metrics, program  # noqa: E402

RANKS, STEPS = 16, 2


class Recipes(ClusterTest):
    def train(self, recipe):
        """One sample an update for each rank. Every host has its logs in a folder, every rank its own loss."""
        cluster = self.cluster(2, slots=8)
        output = self.scratch / "run"
        words = recipes.shortened(recipe, RANKS, STEPS, "--eval-every", 0, "--checkpoint-every", 0, "--log-per-host", "--log-rank-loss", "--output", output)
        result = self.mpirun(cluster, RANKS, program(recipes.program_of(recipe), *words), limit=900)
        self.assertEqual(result.status, 0, result)
        losses = dict(metrics(output))
        self.assertEqual(sorted(losses), list(range(1, STEPS + 1)))
        self.assertTrue(all(math.isfinite(float(loss)) for loss in losses.values()), losses)
        self.expect_logs(output, losses)
        return result

    def expect_logs(self, output, losses):
        for host, first in (("node1", 0), ("node2", 8)):
            self.assertEqual(sorted(file.name for file in (output / "logs" / host).iterdir()), [f"rank-{r:04}.log" for r in range(first, first + 8)])
        shown = self.succeed(program("lockstep", "logs", output)).stdout
        for step, loss in losses.items():
            own = re.findall(rf"(\S+) rank (\d+) info: epoch 1/1  step {step}/{STEPS}  own loss (\S+)  1 sample$", shown, re.M)
            self.assertEqual(sorted((int(rank), host) for host, rank, _ in own), [(rank, f"node{1 + rank // 8}") for rank in range(RANKS)])
            mean = sum(float(value) for _, _, value in own) / RANKS
            self.assertAlmostEqual(mean, float(loss), delta=1e-3 * abs(float(loss)))
        times = re.findall(r"^(\S+ \S+) \S+ rank", shown, re.M)
        self.assertEqual(times, sorted(times))
        second = self.succeed(program("lockstep", "logs", output, "--host", "node2")).stdout
        self.assertEqual(set(re.findall(r" (node\d) rank ", second)), {"node2"})
        records = [json.loads(line.removeprefix("DLLL ")) for line in (output / "dllogger.json").read_text().splitlines()]
        self.assertEqual(records[0]["data"]["world_size"], RANKS)
        updates = [r["data"] for r in records if r["type"] == "LOG" and len(r["step"]) == 2]
        self.assertEqual({u["global_step"]: u["train.loss"] for u in updates}, {step: float(loss) for step, loss in losses.items()})

    def test_resnet50_on_images_of_224_pixels(self):
        result = self.train(recipes.FOLDER / "resnet50_cifar10.toml")
        self.assertIn("16 ranks on 2 hosts", result.stdout)
        self.assertIn("images resized to (3, 224, 224)", result.stdout)

    def test_lenet(self):
        self.train(recipes.FOLDER / "lenet_cifar10.toml")

    def test_the_mlp_with_an_unused_layer(self):
        self.train(recipes.FOLDER / "mnist_mlp_unused.toml")


if __name__ == "__main__":
    paths.main()
