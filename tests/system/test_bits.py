"""The same command gives the same bits, and with --shards at any number of ranks."""

import json
import os
import pty
import subprocess

import support
from support import checkpoints, metrics, program, ranks

# 8 shards of 20 samples are 3 or 2 each; 130 samples by 20: the seventh step of an epoch has 10, and 20 steps end in the third epoch.
RESNET = ["--depth", 20, "--dataset", "digits", "--limit-train", 130, "--limit-eval", 16, "--global-batch", 20, "--shards", 8, "--threads", 1,
          "--loaders", 1, "--schedule", "constant", "--lr", 0.05, "--log-every", 1, "--hash-every", 1, "--eval-every", 0, "--checkpoint-every", 0,
          "--checkpoint-every-steps", 1000, "--quiet"]
MLP = ["--model", "mlp", "--limit-train", 1000, "--limit-eval", 200, "--batch-size", 48, "--epochs", 2, "--threads", 1, "--loaders", 1,
       "--log-every", 1, "--quiet"]


def hashes(output):
    """(step, hash of every tensor) of every line."""
    lines = [json.loads(line) for line in (output / "hashes.jsonl").read_text().splitlines()]
    return [(line["step"], line["tensors"]) for line in lines]


class AnyNumberOfRanks(support.SystemTest):
    def train(self, name, size, *options, output=None):
        output = output or self.scratch / name
        self.succeed(ranks(size, program("train_resnet", *RESNET, *options, "--output", output)))
        return output

    def found(self, output, steps, kernels="f32"):
        """Every update's loss and state, after which no bit is left that could differ."""
        losses, states = metrics(output), hashes(output)
        self.assertEqual([step for step, _ in losses], list(range(1, steps + 1)))
        self.assertEqual([step for step, _ in states], list(range(steps + 1)))
        saved = self.state(checkpoints(output)[-1])
        self.assertEqual(saved["metadata"]["step"], steps)
        self.assertIn(f" {kernels} ", saved["metadata"]["kernels"])
        further = {name: tensor for name, tensor in saved["tensors"].items() if name.startswith(("average/", "noise/"))}
        self.assertEqual(set(saved["tensors"]) - set(further), set(states[-1][1]))
        for name, hashed in states[-1][1].items():
            self.assertTrue(saved["tensors"][name].endswith(hashed), f"{name}: {saved['tensors'][name]}, logged {hashed}")
        self.assertTrue(any("running_var" in name for name in states[-1][1]))
        self.assertNotEqual(states[-1], states[-2])
        return losses, states, further

    def expect_the_same_bits(self, steps, runs, kernels="f32"):
        reference = None
        for number, (size, *options) in enumerate(runs):
            found = self.found(self.train(f"run{number}", size, "--max-steps", steps, *options), steps, kernels)
            reference = reference or found
            for mine, theirs in zip(found, reference):
                self.assertEqual(mine, theirs, f"{size} ranks {options}")
        return reference

    def test_resnet_with_batch_norm_and_eight_shards_resumed_or_not(self):
        expected = self.expect_the_same_bits(20, [(1,), (2,), (3,), (4,), (8,)])
        output = None
        for size, until in [(4, 5), (3, 9), (8, 16), (1, 20)]:  # in mid-epoch each time
            output = self.train("resumed", size, "--max-steps", until, "--resume", "auto", output=output)
        self.assertEqual(self.found(output, 20), expected)

    def resumed(self, name, parts, *options):
        """The same run in parts of (ranks, last step), each from the checkpoint of the one before."""
        output = None
        for size, until in parts:
            output = self.train(name, size, "--max-steps", until, "--resume", "auto", *options, output=output)
        return self.found(output, parts[-1][1]), metrics(output, "eval")

    def test_lamb_with_a_moving_average_and_the_noise_scale_resumed_or_not(self):
        options = ("--optimizer", "lamb", "--clip-layer-norm", 1, "--clip-value", 0.1, "--ema", 0.9, "--noise-scale", "--eval-every", 1)
        expected = self.expect_the_same_bits(10, [(size, *options) for size in (1, 3)])
        self.assertEqual(set(name.split("/")[0] for name in expected[2]), {"average", "noise"})
        found, evaluated = self.resumed("resumed", [(2, 4), (1, 9), (3, 10)], *options)
        self.assertEqual(found, expected)
        undisturbed = metrics(self.scratch / "run0", "eval")
        self.assertEqual([step for step, _ in undisturbed], [7, 10])
        self.assertEqual([line for line in evaluated if line[0] in (7, 10)], undisturbed)  # each start ends with one too
        lines = [json.loads(line) for line in (self.scratch / "run0" / "metrics.jsonl").read_text().splitlines()]
        scales = [line["noise_scale"] for line in lines if "noise_scale" in line]
        self.assertTrue(scales and all(scale > 0 for scale in scales), scales)

    def test_lars_with_the_mean_of_epochs_resumed_or_not(self):
        # An epoch has 7 steps: the mean gets the weights of steps 7 and 14, of which each is a start's last one.
        options = ("--optimizer", "lars", "--lr", 1, "--swa-start", 1, "--eval-every", 1)
        expected = self.expect_the_same_bits(16, [(size, *options) for size in (1, 2)])
        found, evaluated = self.resumed("resumed", [(3, 7), (1, 14), (2, 16)], *options)
        self.assertEqual(found, expected)
        self.assertEqual(evaluated, metrics(self.scratch / "run0", "eval"))

    def test_adam_on_every_path(self):
        self.expect_the_same_bits(4, [(1, "--optimizer", "adam", *path) if not path else (3, "--optimizer", "adam", *path) for path in [
            [], ["--allreduce", "shared"], ["--allreduce", "messages", "--overlap", "thread"], ["--no-share-weights"],
            ["--allreduce", "messages", "--shard-optimizer", "--overlap", "steps", "--bucket-mb", 0.1]]])

    def test_bf16_and_a_wire_of_bf16(self):
        # What --precision bf16 computes, and without falling back to f32 where the processor has no such instructions.
        self.expect_the_same_bits(3, [(size, "--precision", "bf16-emulated", "--wire", "bf16") for size in (1, 3, 8)], kernels="bf16")
        self.expect_the_same_bits(4, [(size, "--wire", "bf16", "--nesterov", "--clip-norm", 1) for size in (1, 2, 3)])

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

    def test_without_shards_the_samples_are_the_same(self):
        # In f64 the order of a sum shows in the last digits alone, so equal losses mean equal samples.
        found = []
        for size, options in [(1, []), (2, []), (3, []), (2, ["--accumulate", 3])]:
            output = self.scratch / f"run{len(found)}"
            self.succeed(ranks(size, program("train_mnist", "--model", "mlp", "--limit-train", 500, "--limit-eval", 50, "--global-batch", 128, "--augment", "--precision",
                                             "f64", "--epochs", 0, "--max-steps", 50, "--threads", 1, "--log-every", 1, "--quiet", "--output", output, *options)))
            found.append([float(loss) for _, loss in metrics(output)])
            self.assertEqual(len(found[-1]), 50)
            self.assertLess(found[-1][-1], 0.9 * found[-1][0])
            for mine, first in zip(found[-1], found[0]):
                self.assertAlmostEqual(mine, first, delta=1e-9, msg=f"{size} ranks {options}")


class TwoRuns(support.SystemTest):
    def test_are_bitwise_equal(self):
        ids = set()

        def run(name, *options):
            output = self.scratch / name
            self.succeed(ranks(2, program("train_mnist", *MLP, "--hash-every", 1, *options, "--output", output)))
            saved = self.state(checkpoints(output)[-1])
            ids.add(saved["metadata"].pop("run"))  # which run it was is all that differs
            return metrics(output), metrics(output, "eval"), hashes(output), saved, checkpoints(output)[-1].stat().st_size

        for way, options in enumerate([(), ("--overlap", "thread", "--loaders", 2, "--augment"), ("--allreduce", "messages", "--threads", 2)]):
            first = run(f"a{way}", *options)
            self.assertEqual(len(first[2]), 23)
            self.assertEqual(run(f"b{way}", *options), first, options)
        self.assertEqual(len(ids), 6)

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
            self.assertEqual(list(record), keys + {"train": communication, "epoch": ["samples"], "eval": []}[record["split"]])
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
        self.assertEqual([(r["step"], r["epoch"], r["samples"]) for r in records if r["split"] == "epoch"], [(11, 1, 1000), (22, 2, 1000)])
        logs = sorted((output / "logs").iterdir())
        self.assertEqual(len(logs), 2, logs)
        self.assertEqual(self.files(output).keys(), {"metrics.jsonl", "run.json", "facts.json", *(f"checkpoints/{p.name}" for p in checkpoints(output))})


class Evaluation(support.SystemTest):
    TOY = ["--dataset", "synthetic", "--max-steps", 2, "--batch-size", 4, "--threads", 1, "--loaders", 0]

    def test_of_synthetic_data_is_short(self):
        result = self.succeed(ranks(2, program("train_toy", *self.TOY, "--output", self.scratch / "run")))
        self.assertIn("synthetic: 10000 training and 128 evaluation samples", result.stdout)
        self.assertIn(" of 128 samples", result.stdout)
        result = self.succeed(ranks(2, program("train_toy", *self.TOY, "--limit-eval", 200, "--output", self.scratch / "more")))
        self.assertIn(" of 200 samples", result.stdout)

    def test_shows_how_far_it_is_on_a_terminal(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(list(map(str, program("train_toy", *self.TOY, "--output", self.scratch / "run"))), stdout=theirs, stderr=theirs,
                                   stdin=subprocess.DEVNULL, env=support.clean_environment(TERM="xterm", COLUMNS="100"))
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:
            pass  # the other side is closed
        os.close(ours)
        self.assertEqual(process.wait(support.LIMIT), 0, text)
        self.assertIn("\revaluation  [ ", text.decode())
        self.assertIn("  0/128", text.decode())


if __name__ == "__main__":
    support.main()
