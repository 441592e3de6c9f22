"""The same command gives the same bits, and with --shards at any number of ranks."""

import json
import unittest

import support
from support import checkpoints, metrics, program, ranks

# 400 samples by 64: the seventh step of an epoch has 16; 12 steps end in the second epoch.
RESNET = ["--depth", 20, "--dataset", "digits", "--limit-train", 400, "--limit-eval", 64, "--global-batch", 64, "--max-steps", 12,
          "--threads", 1, "--loaders", 1, "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 12, "--quiet"]
MLP = ["--model", "mlp", "--limit-train", 1000, "--limit-eval", 200, "--batch-size", 48, "--epochs", 2, "--threads", 1, "--loaders", 1,
       "--log-every", 1, "--quiet"]


class AnyNumberOfRanks(support.SystemTest):
    def expect_the_same_bits(self, sizes, *options, kernels):
        reference = None
        for size in sizes:
            output = self.scratch / f"ranks{size}"
            self.succeed(ranks(size, program("train_resnet", *RESNET, *options, "--output", output)), limit=160)
            losses, evaluations = metrics(output), metrics(output, "eval")
            self.assertEqual([step for step, _ in losses], list(range(1, 13)))
            self.assertEqual(len(evaluations), 2)
            state = self.state(checkpoints(output)[-1])
            self.assertEqual(state["metadata"]["ranks"], size)
            self.assertEqual(state["metadata"]["step"], 12)
            self.assertIn(f" {kernels} ", state["metadata"]["kernels"])
            self.assertTrue(any("running_var" in name for name in state["tensors"]))
            found = (losses, evaluations, state["tensors"])
            reference = reference or found
            for mine, theirs in zip(found, reference):
                self.assertEqual(mine, theirs, f"{size} ranks")

    def test_resnet_with_batch_norm_and_shards(self):
        self.expect_the_same_bits((1, 2, 3, 4), "--shards", 4, kernels="f32")

    def test_resnet_in_bf16(self):
        # What --precision bf16 computes, and without falling back to f32 where the processor has no such instructions.
        self.expect_the_same_bits((1, 2, 3), "--shards", 3, "--precision", "bf16-emulated", kernels="bf16")

    def test_convnet_with_dropout_augmentation_and_adam(self):
        found = []
        for size in (1, 2, 3):
            output = self.scratch / f"ranks{size}"
            self.succeed(ranks(size, program("train_mnist", "--model", "convnet", "--limit-train", 150, "--limit-eval", 50, "--augment", "--optimizer",
                                             "adam", "--global-batch", 50, "--accumulate", 2, "--remainder", "drop", "--shards", 3, "--epochs", 2, "--threads", 1,
                                             "--schedule", "one-cycle", "--log-every", 1, "--quiet", "--output", output)))
            found.append((metrics(output), metrics(output, "eval"), self.state(checkpoints(output)[-1])["tensors"]))
            self.assertEqual(len(found[-1][0]), 6)
            self.assertEqual(found[-1], found[0], f"{size} ranks")

    def test_f64_without_shards_agrees(self):
        found = []
        for size, options in [(1, []), (2, []), (3, []), (2, ["--accumulate", 3])]:
            output = self.scratch / f"run{len(found)}"
            self.succeed(ranks(size, program("train_mnist", "--model", "mlp", "--limit-train", 500, "--limit-eval", 50, "--global-batch", 128, "--precision",
                                             "f64", "--epochs", 0, "--max-steps", 50, "--threads", 1, "--log-every", 1, "--quiet", "--output", output, *options)))
            found.append([float(loss) for _, loss in metrics(output)])
            self.assertEqual(len(found[-1]), 50)
            self.assertLess(found[-1][-1], 0.9 * found[-1][0])
            for mine, first in zip(found[-1], found[0]):
                self.assertAlmostEqual(mine, first, delta=1e-9, msg=f"{size} ranks {options}")


class TwoRuns(support.SystemTest):
    def test_are_bitwise_equal(self):
        def run(name):
            output = self.scratch / name
            self.succeed(ranks(2, program("train_mnist", *MLP, "--output", output)))
            return metrics(output), metrics(output, "eval"), checkpoints(output)[-1].read_bytes()

        self.assertEqual(run("a"), run("b"))

    def test_a_second_run_moves_the_first_aside(self):
        command = ranks(2, program("train_mnist", *MLP, "--output", self.scratch / "run"))
        self.succeed(command)
        first = self.files(self.scratch / "run")
        self.succeed(command)
        second = self.files(self.scratch / "run")
        self.assertEqual(second["metrics.1.jsonl"], first["metrics.jsonl"])
        for name, content in first.items():
            if name.startswith("checkpoints/"):
                self.assertEqual(second[name.replace("checkpoints/", "checkpoints.1/")], content)


class Metrics(support.SystemTest):
    def test_schema(self):
        output = self.scratch / "run"
        result = self.succeed(ranks(2, program("train_mnist", *MLP[:-1], "--output", output)))  # not quiet
        self.assertNotIn("\0", result.output)
        for words in ("2 ranks on 1 host", "hosts: ", " parameters, f32; global batch 96", "1000 training and 200 evaluation samples"):
            self.assertEqual(result.output.count(words), 1, f"{words}\n{result}")
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        keys = ["step", "epoch", "split", "loss", "accuracy", "lr", "samples_per_second", "seconds"]
        communication = ["compute_seconds", "waiting_seconds", "network_seconds", "network_hidden_seconds", "network_bytes",
                         "network_gb_per_second", "node_bytes", "node_gb_per_second", "slowest_rank", "slowest_lead_seconds"]
        seconds = 0
        for record in records:
            self.assertEqual(list(record), keys + (communication if record["split"] == "train" else []))
            self.assertIn(record["split"], ("train", "eval"))
            self.assertIsInstance(record["step"], int)
            self.assertIsInstance(record["epoch"], int)
            for key in ("loss", "accuracy", "lr", "samples_per_second", "seconds"):
                self.assertIsInstance(record[key], (int, float), key)
            self.assertTrue(0 <= record["accuracy"] <= 1 and record["loss"] > 0 and record["samples_per_second"] > 0, record)
            self.assertGreaterEqual(record["seconds"], seconds)
            seconds = record["seconds"]
        # 1000 by 96 is eleven steps, and an evaluation closes each of two epochs.
        self.assertEqual([r["step"] for r in records if r["split"] == "train"], list(range(1, 23)))
        self.assertEqual([(r["step"], r["epoch"]) for r in records if r["split"] == "eval"], [(11, 1), (22, 2)])
        logs = sorted((output / "logs").iterdir())
        self.assertEqual(len(logs), 2, logs)
        self.assertEqual(self.files(output).keys(), {"metrics.jsonl", *(f"checkpoints/{p.name}" for p in checkpoints(output))})


if __name__ == "__main__":
    unittest.main()
