"""Fine-tuning and trials from the command line: a new head on a checkpoint's layers, frozen parts, the range test of rates, overfitting."""

import csv
import json

import support
from support import program, ranks

SMALL = ("--limit-train", 96, "--limit-eval", 32, "--global-batch", 32, "--shards", 4, "--threads", 1)


class Tuning(support.SystemTest):
    def resnet(self, output, *more):
        return program("train_resnet", "--depth", 20, "--dataset", "synthetic", "--no-augment", *SMALL, "--output", self.scratch / output, *more)

    def mnist(self, output, *more):
        return program("train_mnist", "--model", "mlp", "--dataset", "digits", *SMALL, "--output", self.scratch / output, *more)

    def weights(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))["tensors"]

    def test_a_new_head_and_a_frozen_trunk(self):
        self.succeed(ranks(2, self.resnet("first", "--max-steps", 1)))
        start = self.weights("first")
        checkpoint = max((self.scratch / "first" / "checkpoints").glob("step-*.h5"))
        tuned = ["--max-steps", 1, "--weights", checkpoint, "--replace-head", "--freeze", "conv1.*,bn1.*,layer1.*", "--lr-scale", "layer2.*=0.1", "--seed", 9]
        result = self.succeed(ranks(2, self.resnet("tuned2", *tuned)))
        self.assertIn("new, with initial values: fc.weight, fc.bias", result.output)
        self.assertRegex(result.output, r"frozen: \d+ of \d+ parameters, and the statistics of 7 batch norms")
        self.succeed(ranks(1, self.resnet("tuned1", *tuned)))
        self.assertEqual(self.weights("tuned1"), self.weights("tuned2"))
        now = self.weights("tuned2")
        model = [name for name in now if name.startswith("model/")]
        for name in model:
            frozen = name.startswith(("model/conv1.", "model/bn1.", "model/layer1."))
            if frozen or not name.endswith("num_batches_tracked"):
                self.assertEqual(now[name] == start[name], frozen, name)

    def test_mistakes_are_named(self):
        for more, words in ((("--freeze", "layer9.*"), ("layer9.*", "did you mean 'layer")), (("--lr-scale", "fc.*"), ("PATTERN=FACTOR",)),
                            (("--lr-scale", "fc.*=0"), ("above 0", "--freeze")), (("--replace-head",), ("--weights",)),
                            (("--find-lr", "--resume", "auto"), ("--find-lr", "--resume")), (("--find-lr", "--find-lr-range", "1"), ("two rising rates",)),
                            (("--find-lr-steps", 20), ("without --find-lr",)), (("--overfit-batches", 4), ("at most 3",))):
            with self.subTest(more):
                result = self.run_command(ranks(2, self.resnet("wrong", *more)), 60)
                self.assertNotEqual(result.status, 0, result)
                for word in words:
                    self.assertIn(word, result.output, result)
                self.expect_no_process()

    def test_the_range_test_leaves_a_table_and_the_run_alone(self):
        self.succeed(ranks(2, self.mnist("run", "--epochs", 1)))
        before = self.files(self.scratch / "run")
        result = self.succeed(ranks(2, self.mnist("run", "--find-lr", "--find-lr-steps", 40)))
        self.assertIn("<- falls most steeply", result.output)
        self.assertRegex(result.output, r"try --lr \S+")
        folder = self.scratch / "run" / "find-lr"
        found = json.loads((folder / "lr_find.json").read_text())
        self.assertTrue(1e-6 < found["suggestion"] < 10, found)
        with open(folder / "lr_find.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["loss"]) for row in rows], found["loss"])
        after = self.files(self.scratch / "run")
        self.assertEqual({k: v for k, v in after.items() if k in before and "rank-" not in str(k)}, {k: v for k, v in before.items() if "rank-" not in str(k)})
        self.succeed(ranks(2, self.mnist("run", "--epochs", 2, "--resume", "auto")))

    def test_a_few_batches_are_memorised(self):
        result = self.succeed(ranks(2, self.mnist("few", "--overfit-batches", 1, "--epochs", 30, "--schedule", "constant", "--checkpoint-every", 0)))
        lines = [json.loads(line) for line in (self.scratch / "few" / "metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if line["split"] == "eval"]
        self.assertEqual(len(lines), 30)
        self.assertIn("of 32 samples", result.output)
        self.assertLess(lines[-1]["loss"], 0.1 * lines[0]["loss"])
        self.assertEqual(lines[-1]["accuracy"], 1)


if __name__ == "__main__":
    support.main()
