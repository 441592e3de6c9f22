"""train_fields on arrays of the user's files: the same answer at any number of ranks, resumed in the middle of an epoch, and clear errors."""

import array
import json
import math
import unittest

import support
from support import program, ranks


def npy(path, shape, values):
    """Writes f64 values as NumPy does."""
    header = str({"descr": "<f8", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("d", values).tobytes())


class Fields(support.SystemTest):
    def setUp(self):
        super().setUp()
        # 48 samples of 8 x 8 points: u and, with two channels, v; the target is u * v0 - v1.
        u = [((i * 7919) % 211) / 105 - 1 for i in range(48 * 64)]
        v = [((i * 104729) % 307) / 153 - 1 for i in range(48 * 128)]
        y = [u[s * 64 + p] * v[s * 128 + p] - v[s * 128 + 64 + p] for s in range(48) for p in range(64)]
        npy(self.scratch / "u.npy", (48, 8, 8), u)
        npy(self.scratch / "v.npy", (48, 2, 8, 8), v)
        npy(self.scratch / "y.npy", (48, 8, 8), y)

    def command(self, output, *more):
        return program("train_fields", "--dataset", "arrays", "--data-dir", self.scratch, "--inputs", "u.npy,v.npy", "--targets", "y.npy", "--width", 4,
                       "--epochs", 2, "--global-batch", 12, "--shards", 4, "--threads", 1, "--eval-fraction", 0.25, "--schedule", "constant", "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def weights(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))

    def test_any_number_of_ranks_gives_the_same(self):
        for model in ("unet", "fno", "mlp"):
            for count in (1, 2, 3):
                self.succeed(ranks(count, self.command(f"{model}{count}", "--model", model)))
            first = self.weights(f"{model}1")
            for count in (2, 3):
                with self.subTest(model, ranks=count):
                    self.assertEqual(self.weights(f"{model}{count}")["tensors"], first["tensors"])

    def write_series(self):
        """24 steps of two oscillations that the target continues."""
        def at(s, t):
            return (math.sin(0.3 * t + s), math.cos(0.2 * t + 0.7 * s))
        npy(self.scratch / "series.npy", (48, 24, 2), [x for s in range(48) for t in range(24) for x in at(s, t)])
        npy(self.scratch / "next.npy", (48, 2), [x for s in range(48) for x in at(s, 24)])

    def test_a_forecaster_gives_the_same_at_any_number_of_ranks(self):
        self.write_series()
        for count in (1, 2, 3, 4):
            self.succeed(ranks(count, self.command(f"lstm{count}", "--model", "lstm", "--series", "--inputs", "series.npy", "--targets", "next.npy",
                                                   "--depth", 2, "--dropout", 0.1)))
        first = self.weights("lstm1")
        for count in (2, 3, 4):
            self.assertEqual(self.weights(f"lstm{count}")["tensors"], first["tensors"], count)

    def test_fields_become_numbers_and_series_values(self):
        self.write_series()
        npy(self.scratch / "n.npy", (48, 3), [i / 100 for i in range(144)])
        cases = {"resnet": (("--inputs", "v.npy", "--targets", "n.npy", "--spatial-axes", 2), "input (2, 8, 8), target (3)"),
                 "cosmoflow": (("--inputs", "u.npy,v.npy", "--targets", "n.npy"), "input (3, 8, 8), target (3)"),
                 "tcn": (("--inputs", "series.npy,first=series.npy[:, :, 0]", "--targets", "last=series.npy[:, 20:]", "--series"), "input (24, 3), target (4, 2)")}
        for model, (options, shapes) in cases.items():
            with self.subTest(model):
                result = self.succeed(ranks(2, self.command(model, "--model", model, *options)))
                self.assertIn(shapes, result.output)

    def test_a_variational_autoencoder_logs_its_divergence(self):
        for count in (1, 2):
            self.succeed(ranks(count, self.command(f"vae{count}", "--model", "vae", "--latent", 4, "--inputs", "u.npy")))
        self.assertEqual(self.weights("vae1")["tensors"], self.weights("vae2")["tensors"])
        lines = [json.loads(line) for line in (self.scratch / "vae1" / "metrics.jsonl").read_text().splitlines()]
        self.assertTrue(all(line["penalty"] > 0 for line in lines if line["split"] == "eval"), lines)

    def test_a_run_goes_on_in_the_middle_of_an_epoch(self):
        self.succeed(ranks(2, self.command("whole")))
        self.succeed(ranks(2, self.command("parts", "--max-steps", 4, "--checkpoint-every-steps", 1)))
        self.succeed(ranks(1, self.command("parts", "--resume", "auto")))
        self.assertEqual(self.weights("parts")["tensors"], self.weights("whole")["tensors"])

    def test_metrics_and_the_way_back_to_units_are_kept(self):
        result = self.succeed(ranks(2, self.command("run", "--keep", "last:1,best:rmse")))
        self.assertIn("input (3, 8, 8), target (1, 8, 8)", result.output)
        lines = [json.loads(line) for line in (self.scratch / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertTrue(all({"rmse", "r2"} <= line.keys() for line in lines if line["split"] == "eval"), lines)

    def test_mistakes_are_named(self):
        for more, words in ((("--inputs", "none.npy"), ("none.npy",)), (("--targets", ""), ("--targets",)),
                            (("--model", "fno", "--spatial-axes", 1), ("spatial",)), (("--normalise", "best"), ("--normalise is 'best'", "standard"))):
            with self.subTest(more):
                result = self.run_command(ranks(2, self.command("wrong", *more)), 60)
                self.assertNotEqual(result.status, 0, result)
                for word in words:
                    self.assertIn(word, result.output, result)
                self.expect_no_process()


if __name__ == "__main__":
    unittest.main()
