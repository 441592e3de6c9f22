"""train_fields on arrays of the user's files: the same answer at any number of ranks, resumed in the middle of an epoch, and clear errors."""

import array
import json
import math
import unittest

import support
from support import program, ranks

try:
    import h5py
    import numpy
except ImportError:
    h5py = None


def npy(path, shape, values):
    """Writes f64 values as NumPy does."""
    header = str({"descr": "<f8", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("d", values).tobytes())


class Arrays(support.SystemTest):
    """What the tests share: arrays, and a short training on them."""

    def setUp(self):
        super().setUp()
        # 48 samples of 8 x 8 points: u and, with two channels, v; the target is u * v0 - v1.
        self.u = [((i * 7919) % 211) / 105 - 1 for i in range(48 * 64)]
        self.v = [((i * 104729) % 307) / 153 - 1 for i in range(48 * 128)]
        self.y = [self.u[s * 64 + p] * self.v[s * 128 + p] - self.v[s * 128 + 64 + p] for s in range(48) for p in range(64)]
        npy(self.scratch / "u.npy", (48, 8, 8), self.u)
        npy(self.scratch / "v.npy", (48, 2, 8, 8), self.v)
        npy(self.scratch / "y.npy", (48, 8, 8), self.y)

    def command(self, output, *more):
        return program("train_fields", "--dataset", "arrays", "--data-dir", self.scratch, "--inputs", "u.npy,v.npy", "--targets", "y.npy", "--width", 4,
                       "--epochs", 2, "--global-batch", 12, "--shards", 4, "--threads", 1, "--eval-fraction", 0.25, "--schedule", "constant", "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def weights(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))

    def evaluations(self, output):
        """The lines of evaluations, without times."""
        lines = [json.loads(line) for line in (self.scratch / output / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in line.items() if k not in ("seconds", "samples_per_second")} for line in lines if line["split"] == "eval"]

    def expect_equal(self, output, other):
        self.assertEqual(self.weights(output)["tensors"], self.weights(other)["tensors"])
        self.assertEqual(self.evaluations(output), self.evaluations(other))


class Fields(Arrays):
    def test_any_number_of_ranks_gives_the_same(self):
        for model in ("unet", "fno", "mlp"):
            for count in (1, 2, 3, 4):
                self.succeed(ranks(count, self.command(f"{model}{count}", "--model", model)))
            first = self.weights(f"{model}1")
            for count in (2, 3, 4):
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
        npy(self.scratch / "n.npy", (48, 3), [i / 100 for i in range(144)])
        for more, words in ((("--inputs", "none.npy"), ("none.npy",)), (("--inputs", "y.npy"), ("two fields are called 'y'", "--targets recon=y.npy")), (("--targets", ""), ("--targets",)),
                            (("--model", "fno", "--spatial-axes", 1), ("spatial",)),
                            (("--model", "gru"), ("--model gru reads series, expected --series",)),
                            (("--model", "unet", "--series", "--inputs", "u.npy", "--targets", "n.npy"), ("with --series", "--model lstm")), (("--normalise", "best"), ("--normalise is 'best'", "standard"))):
            with self.subTest(more):
                result = self.run_command(ranks(2, self.command("wrong", *more)), 60)
                self.assertNotEqual(result.status, 0, result)
                for word in words:
                    self.assertIn(word, result.output, result)
                self.expect_no_process()


class NotFinite(Arrays):
    """Values that are not finite in samples for evaluation, and in those that are predicted."""

    def setUp(self):
        super().setUp()
        (self.scratch / "train.txt").write_text("".join(f"{i}\n" for i in range(36)))
        (self.scratch / "eval.txt").write_text("".join(f"{i}\n" for i in range(36, 48)))
        for name, values in (("nan", self.u), ("bad", self.y)):
            values[41 * 64 + 3] = values[45 * 64] = math.nan
            npy(self.scratch / f"{name}.npy", (48, 8, 8), values)
        self.subsets = ("--model", "cnn", "--train-subset", self.scratch / "train.txt", "--eval-subset", self.scratch / "eval.txt")

    def test_the_sample_of_an_evaluation_is_named(self):
        nan = ("--targets", "bad.npy", *self.subsets)
        for count in (1, 3):
            self.fail_with(ranks(count, self.command(f"stop{count}", *nan)), "the loss of the evaluation is nan: 'target' of sample 41")
        result = self.succeed(ranks(2, self.command("log", "--guard-action", "log", *nan)))
        self.assertIn("'target' of sample 41", result.output)

    def test_the_inputs_of_predictions_are_counted(self):
        self.succeed(ranks(1, self.command("run", *self.subsets)))
        result = self.succeed(ranks(2, program("train_fields", "--resume", "auto", "--predict", "p.h5", "--output", self.scratch / "run", "--dataset", "arrays",
                                               "--data-dir", self.scratch, "--inputs", "nan.npy,v.npy", "--model", "cnn", "--width", 4, "--threads", 1)))
        self.assertIn("the inputs of 2 of 48 samples are not finite, the first is sample 41", result.output)


class Sets(Arrays):
    """Where samples come from and in which order changes no bit with the number of ranks; nor does where they are kept."""

    def test_a_cache_and_a_common_store_change_nothing(self):
        self.succeed(ranks(1, self.command("plain", "--model", "cnn")))
        for count, name, more in ((3, "store", ("--store",)), (2, "cache", ("--cache-mb", 1, "--unreadable", "replace"))):
            self.succeed(ranks(count, self.command(name, "--model", "cnn", *more)))
            self.expect_equal(name, "plain")

    def test_files_of_indices_name_the_samples(self):
        (self.scratch / "train.txt").write_text("".join(f"{i}\n" for i in range(0, 36)))
        (self.scratch / "eval.txt").write_text("".join(f"{i}\n" for i in range(36, 48)))
        subsets = ("--train-subset", self.scratch / "train.txt", "--eval-subset", self.scratch / "eval.txt")
        result = self.succeed(ranks(2, self.command("subsets", "--model", "cnn", *subsets)))
        self.assertIn("36 training and 12 evaluation samples", result.output)
        self.fail_with(ranks(2, self.command("wrong", "--eval-subset", self.scratch / "eval.txt")), "expected --train-subset beside it")

    def test_weights_symmetries_and_noise_do_not_depend_on_the_ranks(self):
        (self.scratch / "weights.txt").write_text("".join(f"{i % 3}\n" for i in range(48)))
        more = ("--model", "cnn", "--sample-weights", self.scratch / "weights.txt", "--symmetry", "all", "--vectors", "v[1,0]", "--noise", 0.1)
        for count in (1, 3):
            self.succeed(ranks(count, self.command(f"all{count}", *more)))
        self.expect_equal("all3", "all1")
        self.succeed(ranks(1, self.command("plain", "--model", "cnn")))
        self.assertNotEqual(self.weights("all1")["tensors"], self.weights("plain")["tensors"])

    def test_given_statistics_are_those_of_the_checkpoint(self):
        given = ("--mean", "0.5,0,0.25,1", "--std", "1,2,3,4")
        self.succeed(ranks(2, self.command("given", "--model", "cnn", *given)))
        scales = self.weights("given")["metadata"]["data"]["normalisation"]["fields"]
        self.assertEqual([(field["shift"], field["scale"]) for field in scales], [([0.5], [1]), ([0, 0.25], [2, 3]), ([1], [4])])
        self.fail_with(ranks(2, self.command("wrong", "--mean", "0.5", "--std", "1")), "--mean has 1 numbers and --std 1, expected 4")

    def test_mistakes_are_named(self):
        for more, words in ((("--balanced",), "--balanced needs a class of each sample"), (("--vectors", "v"), "without --symmetry"),
                            (("--symmetry", "all", "--vectors", "w"), "--vectors names 'w'"), (("--mean", "1"), "expected both or none"),
                            (("--classes", 3), "--classes is 3"),
                            (("--model", "unet", "--dropout", 0.5), "--dropout is 0.5, which --model unet does not read; it is for cosmoflow, lstm, gru, tcn, encoder"),
                            (("--model", "cnn", "--kl-weight", 2), "--kl-weight is 2, which --model cnn does not read; it is for vae"),
                            (("--model", "cnn", "--modes", 4), "--modes is 4, which --model cnn does not read; it is for fno"),
                            (("--focal-gamma", 1), "--focal-gamma is 1, which --loss mse does not read; it is for focal")):
            with self.subTest(more):
                self.fail_with(ranks(2, self.command("wrong", *more)), words)


class Classes(Arrays):
    def setUp(self):
        super().setUp()
        # A class of each point, with points that have none; and a table with the sign of a product.
        self.mask = [255 if i % 11 == 0 else 2 if y > 0.5 else 1 if y > -0.25 else 0 for i, y in enumerate(self.y)]
        npy(self.scratch / "mask.npy", (48, 8, 8), self.mask)
        rows = [f"{a:.4f},{b:.4f},{'pos' if a * b > 0.2 else 'neg' if a * b < -0.2 else 'none'}" for a, b in zip(self.u[:240], self.v[300:540])]
        (self.scratch / "table.csv").write_text("a,b,sign\n" + "\n".join(rows) + "\n")

    def pixels(self, output, *more):
        return self.command(output, "--targets", "mask.npy", "--loss", "cross-entropy", "--model", "cnn", "--ignore-index", 255, *more)

    def table(self, output, *more):
        return program("train_fields", "--dataset", "csv", "--files", self.scratch / "table.csv", "--inputs", "a,b", "--label", "sign", "--model", "mlp",
                       "--epochs", 3, "--global-batch", 24, "--shards", 4, "--threads", 1, "--lr", 0.01, "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def test_of_pixels_are_the_same_at_any_number_of_ranks(self):
        for count in (1, 2, 3, 4):
            self.succeed(ranks(count, self.pixels(f"ranks{count}", "--class-weights", "balanced")))
        for count in (2, 3, 4):
            self.expect_equal(f"ranks{count}", "ranks1")
        last = self.evaluations("ranks1")[-1]
        table = last["confusion"]
        self.assertEqual([len(row) for row in table], [3, 3, 3])
        everything = sum(map(sum, table))
        self.assertAlmostEqual(last["accuracy"], sum(table[i][i] for i in range(3)) / everything, places=14)
        iou = [table[i][i] / (sum(table[i]) + sum(row[i] for row in table) - table[i][i]) for i in range(3)]
        for found, expected in zip(last["iou_by_class"], iou):
            self.assertAlmostEqual(found, expected, places=14)
        self.assertAlmostEqual(last["mean_iou"], sum(iou) / 3, places=14)
        self.assertEqual(self.weights("ranks1")["metadata"]["data"]["model"]["classes"], 3)

    def test_of_a_table_have_names_and_an_exact_auc(self):
        for count in (1, 3):
            result = self.succeed(ranks(count, self.table(f"ranks{count}", "--keep", "last:1,best:auc", "--balanced")))
        self.expect_equal("ranks3", "ranks1")
        self.assertIn("confusion, rows are classes and columns predictions:", result.output)
        self.assertEqual(self.weights("ranks1")["metadata"]["data"]["model"]["class_names"], ["neg", "none", "pos"])
        self.assertTrue(0.5 < self.evaluations("ranks1")[-1]["auc"] <= 1)

    def test_every_loss_trains(self):
        flags = self.scratch / "flags.npy"
        npy(flags, (48, 2, 8, 8), [float(x > 0) for x in self.v])
        for loss, more in (("dice", ("--targets", "mask.npy", "--ignore-index", 255)), ("bce", ("--targets", "flags.npy", "--class-weights", "1,2")), ("focal", ("--targets", "flags.npy")), ("gaussian-nll", ())):
            with self.subTest(loss):
                self.succeed(ranks(2, self.command(loss, "--model", "cnn", "--loss", loss, *more)))
                losses = [line["loss"] for line in self.evaluations(loss)]
                self.assertLess(losses[-1], losses[0])

    def test_probable_mistakes_give_a_warning(self):
        (self.scratch / "numbers.csv").write_text("a,b\n" + "".join(f"{i},{i}.5\n" for i in range(48)))
        path = self.scratch / "int.npy"
        path.write_bytes((self.scratch / "mask.npy").read_bytes().replace(b"<f8", b"<i8").split(b"\n")[0] + b"\n" + array.array("q", self.mask).tobytes())
        npy(self.scratch / "same.npy", (48, 2, 8, 8), [x for s in range(48) for x in [0.1] * 64 + self.u[s * 64:s * 64 + 64]])
        for command, words in ((self.command("same", "--inputs", "same.npy", "--model", "cnn"), "all values in the training samples are equal: 'same' channel 0"),
                               (self.command("int", "--targets", "int.npy", "--model", "cnn"), "targets 'int' are integers, trained as numbers"),
                               (self.pixels("gap", "--ignore-index", -1), "252 of 256 classes never occur in the training samples: is 255 an --ignore-index?"),
                               (self.table("many", "--files", self.scratch / "numbers.csv", "--inputs", "a", "--label", "b", "--eval-fraction", 0), "for numbers, --targets 'b'")):
            with self.subTest(words):
                self.assertEqual(self.succeed(ranks(2, command)).output.count(words), 1)

    def test_mistakes_are_named(self):
        for command, words in ((self.pixels("wrong", "--ignore-index", -1, "--classes", 3), "'mask' is 255, expected a class from 0 to 2"),
                               (self.pixels("wrong", "--classes", 2), "'mask' is 2, expected a class from 0 to 1"),
                               (self.command("wrong", "--targets", "mask.npy", "--loss", "bce"), "[flags]"),
                               (self.command("wrong", "--targets", "mask.npy", "--loss", "focal"), "expected 0 or 1"),
                               (self.pixels("wrong", "--class-weights", "1,2"), "--class-weights has 2 numbers, expected 3: one for each class"),
                               (self.command("wrong", "--loss", "cross-entropy"), "'y' is "),
                               (self.command("wrong", "--class-weights", "balanced"), "a loss that takes none"),
                               (self.table("wrong", "--loss", "mse"), "expected no --targets and a --loss of classes"),
                               (self.table("wrong", "--label", "none"), "none")):
            with self.subTest(words):
                result = self.run_command(ranks(2, command), 60)
                self.assertNotEqual(result.status, 0, result)
                self.assertIn(words, result.output)
                self.expect_no_process()


@unittest.skipIf(h5py is None, "h5py or NumPy is not installed (scripts/setup.sh --tests)")
class Hdf5(Arrays):
    """Compressed files in chunks of several samples, named by a pattern."""

    def setUp(self):
        super().setUp()
        for part, first in (("a", 0), ("b", 30)):
            last = 30 if part == "a" else 48
            with h5py.File(self.scratch / f"run-{part}.h5", "w") as file:
                for name, values, shape in (("u", self.u, (8, 8)), ("fields/v", self.v, (2, 8, 8)), ("y", self.y, (8, 8))):
                    whole = numpy.array(values).reshape(48, *shape)[first:last]
                    file.create_dataset(name, data=whole.astype(">f8"), chunks=(5, *shape), compression="gzip", shuffle=True)

    def command(self, output, *more):
        command = super().command(output, "--files", "run-*.h5", *more)
        changes = {"arrays": "hdf5", "u.npy,v.npy": "u,fields/v", "y.npy": "y"}
        return [changes.get(word, word) for word in command]

    def test_a_run_goes_on_in_the_middle_of_an_epoch_at_another_number_of_ranks(self):
        for more in ((), ("--store", "--cache-mb", 1)):
            with self.subTest(more):
                self.succeed(ranks(3, self.command("whole", *more)))
                self.succeed(ranks(2, self.command("parts", "--max-steps", 4, "--checkpoint-every-steps", 1, *more)))
                self.succeed(ranks(4, self.command("parts", "--resume", "auto", *more)))
                self.assertEqual(self.weights("parts")["tensors"], self.weights("whole")["tensors"])


if __name__ == "__main__":
    support.main()
