"""Evaluations and predictions of a run's checkpoints: by the programs and by the lockstep command, on arrays, tables and images."""

import array
import csv
import json
import math
import resource
import zipfile

import support
from support import checkpoints, clean_environment, program, ranks

SAMPLES, POINTS = 48, 64
TRAINING = ["--epochs", 2, "--global-batch", 12, "--shards", 4, "--threads", 1, "--loaders", 1, "--schedule", "constant", "--warmup-epochs", 0]


def npy(path, shape, values):
    """Writes f64 values as NumPy does."""
    header = str({"descr": "<f8", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("d", values).tobytes())


def read_npy(path):
    """(shape, values) of f32 or f64."""
    data = path.read_bytes()
    length = int.from_bytes(data[8:10], "little")
    header = eval(data[10:10 + length].decode(), {"__builtins__": {}})
    return header["shape"], array.array({"<f8": "d", "<f4": "f"}[header["descr"]], data[10 + length:])


def rmse(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / len(a))


class PredictTest(support.SystemTest):
    def lockstep(self, number, *arguments):
        return ranks(number, program("lockstep", *arguments))

    def evaluations(self, output):
        return [json.loads(line) for line in (self.scratch / output / "evaluations.jsonl").read_text().splitlines()]


class Arrays(PredictTest):
    def setUp(self):
        super().setUp()
        # 48 samples of 8 x 8 points: u and, with two channels, v; the target is 100 + 10 (u * v0 - v1).
        self.u = [((i * 7919) % 211) / 105 - 1 for i in range(SAMPLES * POINTS)]
        self.v = [((i * 104729) % 307) / 153 - 1 for i in range(SAMPLES * 2 * POINTS)]
        self.y = [100 + 10 * (self.u[s * 64 + p] * self.v[s * 128 + p] - self.v[s * 128 + 64 + p]) for s in range(SAMPLES) for p in range(POINTS)]
        npy(self.scratch / "u.npy", (SAMPLES, 8, 8), self.u)
        npy(self.scratch / "v.npy", (SAMPLES, 2, 8, 8), self.v)
        npy(self.scratch / "y.npy", (SAMPLES, 8, 8), self.y)

    def train(self, *more):
        self.succeed(ranks(2, program("train_fields", "--dataset", "arrays", "--inputs", "u.npy,v.npy", "--targets", "y.npy", "--model", "cnn", "--width", 4,
                                      "--precision", "f64", "--eval-fraction", 0.25, "--output", "run", *TRAINING, *more)))

    def test_the_best_checkpoint_and_two_targets(self):
        self.train("--keep", "last:1,best:rmse", "--targets", "y.npy,z=y.npy")
        values = {line["step"]: line["rmse"] for line in map(json.loads, (self.scratch / "run" / "metrics.jsonl").read_text().splitlines()) if line["split"] == "eval"}
        best = min(values, key=values.get)
        result = self.succeed(self.lockstep(1, "evaluate", "run", "--batch-size", 5, "--best"))
        self.assertIn(f"run/checkpoints/step-{best:010}.h5: loss ", result.output)
        line = self.evaluations("run")[0]
        self.assertEqual((line["step"], len(line["rmse_in_units"])), (best, 2))
        self.fail_with(self.lockstep(1, "evaluate", checkpoints(self.scratch / "run")[0], "--best"), "is a file, and --best was given; expected the folder of a run")
        # Two arrays: not into a .npy file, and into an archive as NumPy's.
        refused = self.fail_with(self.lockstep(2, "predict", "run", "--output", "p.npy"), "p.npy: there are 2 arrays, y, z, and a .npy file holds one; expected a name that ends in .npz, .h5 or .csv")
        self.assertNotIn("model: ", refused.output, "no model is built")
        self.succeed(self.lockstep(2, "predict", "run", "--best", "--output", "p.npz", "--batch-size", 7))
        self.succeed(self.lockstep(1, "predict", "run", "--output", "p.csv", "--best"))
        with zipfile.ZipFile(self.scratch / "p.npz") as archive:
            self.assertEqual(archive.namelist(), ["y.npy", "z.npy"])
            self.assertIsNone(archive.testzip())
            for name in archive.namelist():
                (self.scratch / name).write_bytes(archive.read(name))
        with open(self.scratch / "p.csv", newline="") as file:
            rows = [list(map(float, row)) for row in list(csv.reader(file))[1:]]
        for at, name in enumerate(("y.npy", "z.npy")):
            shape, predicted = read_npy(self.scratch / name)
            self.assertEqual(shape, (SAMPLES, 8, 8))
            self.assertEqual(list(predicted), [value for row in rows for value in row[1 + 64 * at:65 + 64 * at]])

    def test_the_predictions_are_those_that_the_evaluation_measured(self):
        self.train()
        before = self.files(self.scratch / "run")
        recorded = [json.loads(line) for line in (self.scratch / "run" / "metrics.jsonl").read_text().splitlines()][-1]
        # As the run evaluated itself; then all samples, as if they were new.
        result = self.succeed(self.lockstep(2, "evaluate", "run"))
        self.assertIn("evaluation of run/checkpoints/step-0000000006.h5: loss ", result.output)
        self.succeed(self.lockstep(1, "evaluate", "run", "--inputs", "u.npy,v.npy"))
        own, all_samples = self.evaluations("run")
        self.assertEqual((own["split"], own["step"]), ("eval", 6))
        self.assertAlmostEqual(own["loss"], recorded["loss"], delta=1e-12 * recorded["loss"])
        self.assertAlmostEqual(own["rmse"], recorded["rmse"], delta=1e-12 * recorded["rmse"])
        self.assertEqual(all_samples["samples"], SAMPLES)
        self.assertEqual(all_samples["data"], {"dataset": "arrays", "inputs": "u.npy,v.npy"})
        self.assertRegex(all_samples["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        # For programs: on standard output nothing but a line of JSON, the one in the file.
        printed = self.succeed(self.lockstep(2, "evaluate", "run", "--json")).stdout
        self.assertEqual(json.loads(printed), self.evaluations("run")[2])
        predicted = json.loads(self.succeed(self.lockstep(2, "predict", "run", "--output", "p.h5", "--json")).stdout)
        self.assertEqual({name: predicted[name] for name in ("file", "samples", "arrays")},
                         {"file": "p.h5", "samples": SAMPLES, "arrays": {"y": [SAMPLES, 8, 8]}})
        exported = json.loads(self.succeed(self.lockstep(1, "export", "run", "--output", "m.onnx", "--batch", 3, "--json")).stdout)
        self.assertEqual(exported, {"file": "m.onnx", "bytes": (self.scratch / "m.onnx").stat().st_size, "batch": 3})
        self.fail_with(ranks(1, program("train_fields", "--dataset", "arrays", "--inputs", "u.npy,v.npy", "--targets", "y.npy", "--json")),
                       "--json has no effect without --evaluate-only, --predict or --onnx")
        # Without targets: the same file at any number of ranks.
        (self.scratch / "y.npy").unlink()
        for count in (1, 2, 3):
            self.succeed(self.lockstep(count, "predict", "run", "--output", f"p{count}.npy", "--batch-size", 5))
        shape, predicted = read_npy(self.scratch / "p1.npy")
        self.assertEqual(shape, (SAMPLES, 8, 8))
        for count in (2, 3):
            self.assertEqual((self.scratch / f"p{count}.npy").read_bytes(), (self.scratch / "p1.npy").read_bytes())
        entry = next(e for e in self.state(checkpoints(self.scratch / "run")[-1])["metadata"]["data"]["normalisation"]["fields"]
                     if e["field"] == "y")
        scale = entry["scale"][0]
        self.assertAlmostEqual(rmse(predicted, self.y) / scale, all_samples["rmse"], delta=1e-10)
        self.assertAlmostEqual(rmse(predicted, self.y), all_samples["rmse_in_units"], delta=1e-9)
        self.assertAlmostEqual(sum(abs(p - y) for p, y in zip(predicted, self.y)) / len(predicted), all_samples["mae_in_units"], delta=1e-9)
        after = self.files(self.scratch / "run")
        del after["evaluations.jsonl"]
        self.assertEqual(after, before, "nothing of the run changed")

    def test_the_numbers_of_the_run_normalise_other_files(self):
        self.train()
        self.succeed(self.lockstep(1, "predict", "run", "--output", "all.npy"))
        # The last five samples under other names: measured anew, their mean would be another one.
        npy(self.scratch / "fresh.npy", (5, 8, 8), self.u[-5 * 64:])
        npy(self.scratch / "wind.npy", (5, 2, 8, 8), self.v[-5 * 128:])
        self.succeed(self.lockstep(2, "predict", "run", "--inputs", "fresh.npy,wind.npy", "--output", "few.npy", "--batch-size", 2))
        (_, everything), (shape, few) = read_npy(self.scratch / "all.npy"), read_npy(self.scratch / "few.npy")
        self.assertEqual(shape, (5, 8, 8))
        self.assertLess(max(abs(a - b) for a, b in zip(few, everything[-5 * 64:], strict=True)), 1e-10)

    def test_the_program_does_it_by_itself(self):
        self.train("--checkpoint-every-steps", 1)
        # Its own options, the newest checkpoint, and a lock that another job holds: nothing is written beside it.
        command = program("train_fields", "--dataset", "arrays", "--inputs", "u.npy,v.npy", "--targets", "y.npy", "--model", "cnn", "--width", 4, "--precision", "f64",
                          "--eval-fraction", 0.25, "--output", "run", "--batch-size", 6, "--quiet")
        self.succeed(ranks(2, [*command, "--resume", "auto", "--evaluate-only"]))
        self.succeed(ranks(2, [*command, "--resume", "auto", "--predict", "a.csv"]))
        self.succeed(ranks(1, [*command, "--weights", str(checkpoints(self.scratch / "run")[-1]), "--predict", "b.csv"]))
        self.assertEqual(self.evaluations("run")[0]["step"], 6)
        self.assertEqual((self.scratch / "a.csv").read_bytes(), (self.scratch / "b.csv").read_bytes())
        with open(self.scratch / "a.csv", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual((len(rows), rows[0][:3], rows[0][-1], len(rows[0])), (SAMPLES + 1, ["index", "y_0_0", "y_0_1"], "y_7_7", 65))

    def test_mistakes_are_named_and_leave_no_file(self):
        self.train()
        checkpoint = checkpoints(self.scratch / "run")[-1]
        self.succeed(self.lockstep(1, "predict", "run", "--output", "weights.h5"))
        (self.scratch / "there.csv").write_text("mine")
        bare = self.scratch / "bare.h5"
        bare.write_bytes(checkpoint.read_bytes())
        self.succeed(program("system_state", bare, "without", "data"))
        cut = self.scratch / "cut.h5"
        cut.write_bytes(checkpoint.read_bytes()[:-100])
        before = set(self.scratch.iterdir())
        options = ["--dataset", "arrays", "--inputs", "u.npy,v.npy", "--targets", "y.npy"]
        for command, words in (
                (self.lockstep(2, "predict", "run", "--output", "there.csv"), ["there.csv exists already"]),
                (self.lockstep(2, "predict", "run", "--output", "none/p.h5"), ["there is no folder none"]),
                (self.lockstep(2, "predict", "run", "--output", "p.txt"), ["expected a name that ends in .h5, .npz, .npy or .csv"]),
                (self.lockstep(2, "predict", "run"), ["--output is missing"]),
                (self.lockstep(3, "predict", "nothing", "--output", "p.h5"), ["nothing: "]),
                (self.lockstep(1, "evaluate", cut), ["cut.h5"]),
                (self.lockstep(2, "evaluate", "weights.h5"), ["weights.h5: it has no record of the program", "--program PATH"]),
                (self.lockstep(1, "evaluate", "run", "--program", "./absent"), ["./absent: No such file"]),
                (self.lockstep(2, "predict", bare, "--output", "p.h5"), ["bare.h5 has weights alone; expected a checkpoint"]),
                (self.lockstep(2, "predict", "run", "--inputs", "v.npy", "--output", "p.h5"), ["--inputs has 1 arrays (v), the model was trained with 2 (u, v)"]),
                (self.lockstep(2, "predict", "run", "--inputs", "v.npy,u.npy", "--output", "p.h5"), ["expected the order u, v"]),
                (self.lockstep(2, "predict", "run", "--width", 8, "--output", "p.h5"), ["[weights] run/checkpoints/step-0000000006.h5: ", "give the model's options as in the run that wrote it"]),
                (ranks(2, program("train_fields", *options, "--evaluate-only")), ["--evaluate-only needs weights"]),
                (ranks(2, program("train_fields", *options, "--weights", checkpoint, "--evaluate-only", "--predict", "p.h5")), ["expected one of the two"]),
                (self.lockstep(2, "evaluate", "run", "--eval-fraction", 0), ["--evaluate-only without evaluation samples"])):
            with self.subTest(command):
                self.fail_with(command, *words)
        self.assertEqual((self.scratch / "there.csv").read_text(), "mine")
        self.assertEqual({p for p in self.scratch.iterdir() if p.name != "runs"}, before)

    def test_a_full_disk_leaves_no_file(self):
        self.train()
        go = self.scratch / "go"
        command = self.lockstep(2, "predict", "run", "--output", "p.csv", "--batch-size", 4)
        process = self.start(command, clean_environment(LOCKSTEP_FAULT=f"predict.write:sleep=600:rank=0:at=24:until={go}"))
        size = self.wait_for(process, lambda: max((p.stat().st_size for p in self.scratch.glob(".lockstep-*.tmp") if p.stat().st_size > 20000), default=0))
        for rank in support.processes_with("--predict=p.csv"):
            hard = resource.prlimit(rank, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(rank, resource.RLIMIT_FSIZE, (size, hard))
        go.touch()
        result = self.finish(process)
        self.assertEqual(result.status, 1, result)
        self.assertEqual(result.output.count("p.csv: write to temporary file: File too large"), 1, result)
        self.assertEqual([p.name for p in self.scratch.iterdir() if p.suffix in (".tmp", ".csv")], [])
        self.expect_no_process()


class Kinds(PredictTest):
    def test_a_table(self):
        rows = [(i % 7, (i * 5) % 11, 3 * (i % 7) - (i * 5) % 11, i) for i in range(60)]
        (self.scratch / "t.csv").write_text("a,b,\"heat, total\",noise\n" + "".join(f"{a},{b},{h},{n}\n" for a, b, h, n in rows))
        self.succeed(ranks(2, program("train_fields", "--dataset", "csv", "--files", "t.csv", "--inputs", "a,b", "--targets", "2", "--model", "mlp",
                                      "--width", 8, "--precision", "f64", "--output", "run", *TRAINING)))
        # Further columns, and none of the target.
        (self.scratch / "new.csv").write_text("b,z,a\n" + "".join(f"{b},9,{a}\n" for a, b, _, _ in rows))
        self.succeed(self.lockstep(2, "predict", "run", "--files", "new.csv", "--output", "out.csv"))
        self.succeed(self.lockstep(1, "evaluate", "run", "--files", "t.csv"))
        with open(self.scratch / "out.csv", newline="") as file:
            found = list(csv.reader(file))
        self.assertEqual(found[0], ["index", "heat, total"])
        self.assertEqual([int(row[0]) for row in found[1:]], list(range(60)))
        entry = next(e for e in self.state(checkpoints(self.scratch / "run")[-1])["metadata"]["data"]["normalisation"]["fields"] if e["field"] == "target")
        error = rmse([float(row[1]) for row in found[1:]], [h for _, _, h, _ in rows])
        self.assertAlmostEqual(error / entry["scale"][0], self.evaluations("run")[0]["rmse"], delta=1e-9)

    def test_a_table_with_missing_values(self):
        rows = [(str(i % 7) if i % 5 else "", str((i * 5) % 11) if i != 8 else "NA", str(i) if i % 10 else "nan") for i in range(60)]
        (self.scratch / "t.csv").write_text("a,b,y\n" + "".join(",".join(row) + "\n" for row in rows))
        command = ["--dataset", "csv", "--files", "t.csv", "--inputs", "a,b", "--targets", "y", "--model", "mlp", "--width", 8, "--precision", "f64", "--output", "run", *TRAINING]
        result = self.run_command(ranks(2, program("train_fields", *command)), 60)
        self.assertIn("t.csv] line 2, column 0 ('a'): the value is missing (''), expected a number; --missing skip leaves such rows out", result.output)
        result = self.succeed(ranks(2, program("train_fields", *command, "--missing", "skip", "--output", "skip")))
        self.assertIn("values are missing: 13 rows are left out; the first is t.csv, line 2, column 0 ('a')", result.output)
        result = self.succeed(ranks(2, program("train_fields", *command, "--missing", "mean", "--eval-fraction", 0)))
        self.assertIn("values are missing: 6 rows are left out, 7 numbers are the means of their columns; the first is t.csv, line 2, column 2 ('y')", result.output)
        self.assertIn("data: csv: 54 training samples", result.output)
        present = [int(a) for a, _, y in rows if a and y != "nan"]
        (self.scratch / "gap.csv").write_text("a,b\n,3\n")
        (self.scratch / "whole.csv").write_text(f"a,b\n{sum(present) / len(present)!r},3\n")
        for name in ("gap", "whole"):
            self.succeed(self.lockstep(1, "predict", "run", "--files", f"{name}.csv", "--output", f"{name}.out.csv"))
        self.assertEqual((self.scratch / "gap.out.csv").read_text(), (self.scratch / "whole.out.csv").read_text())
        self.fail_with(self.lockstep(2, "predict", "skip", "--files", "gap.csv", "--output", "p.csv"), "a prediction needs all inputs, and --missing mean takes the mean of the column")

    def test_classes(self):
        self.succeed(program("lockstep-data", "convert", "digits", "--to", "npy", "--output", "digits"))
        self.succeed(ranks(2, program("train_mnist", "--model", "mlp", "--dataset", "npy", "--data-dir", "digits", "--limit-train", 640, "--limit-eval", 100, "--epochs", 1,
                                      "--global-batch", 64, "--threads", 1, "--output", "run")))
        data = ["--data-dir", "digits"]
        self.succeed(self.lockstep(2, "evaluate", "run", *data, "--limit-eval", 0))
        for count in (1, 3):
            self.succeed(self.lockstep(count, "predict", "run", "--output", f"p{count}.csv", *data))
        self.assertEqual((self.scratch / "p1.csv").read_bytes(), (self.scratch / "p3.csv").read_bytes())
        refused = self.fail_with(self.lockstep(2, "predict", "run", "--output", "p.npy", *data),
                                 "p.npy: there are 2 arrays, class, probability, and a .npy file holds one; expected a name that ends in .npz, .h5 or .csv")
        self.assertNotIn("model: ", refused.output, "no model is built")
        labels = (self.scratch / "digits" / "eval_labels.npy").read_bytes()
        with open(self.scratch / "p1.csv", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["index", "class", *(f"probability_{c}" for c in range(10))])
        self.assertEqual(len(rows) - 1, 2000)
        right = 0
        width = (len(labels) - 10 - int.from_bytes(labels[8:10], "little")) // 2000
        for sample, (_, chosen, *chances) in enumerate(rows[1:]):
            chances = list(map(float, chances))
            self.assertEqual(int(chosen), chances.index(max(chances)))
            self.assertAlmostEqual(sum(chances), 1, delta=1e-5)
            right += int(chosen) == labels[len(labels) - (2000 - sample) * width]
        self.assertAlmostEqual(right / 2000, self.evaluations("run")[0]["accuracy"], delta=1e-9)


if __name__ == "__main__":
    support.main()
