"""train_images on folders and packed records: the same answer at any number of ranks, resumed in the middle of an epoch, and clear errors."""

import json
import pathlib
import struct
import zlib

import support
from support import program, ranks

try:
    from PIL import Image
except ImportError:
    Image = None  # PNG files alone are written then

CHANGES = ["--auto-augment", "ra", "--color-jitter", "0.2,0.2,0.2,0.05", "--random-erase", 0.5, "--erase-noise", "--vflip", 0.5, "--noise", 0.02, "--cutout", 5]
MIXED = ["--mixup-alpha", 0.4, "--cutmix-alpha", 1, "--label-smoothing", 0.1]


def write_image(path, width, height, colour, seed):
    """A file of one colour with a pattern; every second one is a JPEG, as its name says."""
    rows = [bytes(min(255, max(0, colour[c] + (seed * 31 + x * 7 + y * 13 + c * 50) % 61 - 30)) for x in range(width) for c in range(3)) for y in range(height)]
    path.parent.mkdir(parents=True, exist_ok=True)
    if seed % 2 and Image:
        Image.frombytes("RGB", (width, height), b"".join(rows)).save(path.with_suffix(".jpg"), quality=90)
        return

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.with_suffix(".png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
                                         + chunk(b"IEND", b""))


class Images(support.SystemTest):
    def setUp(self):
        super().setUp()
        self.images = self.scratch / "images"
        for split, count in (("train", 12), ("val", 5)):
            for number, (name, colour) in enumerate((("ant", (200, 60, 60)), ("bee", (60, 200, 60)), ("cat", (60, 60, 200)))):
                for i in range(count - 2 * number):
                    write_image(self.images / split / name / f"{i:02}", 40 + 3 * i, 60 - 2 * i, colour, i)

    def command(self, output, *more, dataset="folder"):
        where = self.images if dataset == "folder" else self.scratch / "packed"
        return program("train_images", "--dataset", dataset, "--data-dir", where, "--model", "toy", "--image-size", 32, "--epochs", 2, "--global-batch", 8,
                       "--shards", 4, "--threads", 1, "--schedule", "constant", "--lr", 0.01, "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def pack(self):
        self.succeed(program("lockstep", "pack", "--data-dir", self.images, "--output", self.scratch / "packed"))

    def state_of(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))

    def weights(self, output):
        return self.state_of(output)["tensors"]

    def test_any_number_of_ranks_gives_the_same(self):
        for count in (1, 2, 3):
            self.succeed(ranks(count, self.command(f"plain{count}", *CHANGES, "--mean-std", "measured", "--balanced")))
            self.succeed(ranks(count, self.command(f"mixed{count}", *MIXED, "--cache-mb", 1, "--full-decode")))
        for count in (2, 3):
            for name in ("plain", "mixed"):
                with self.subTest(name, ranks=count):
                    self.assertEqual(self.weights(f"{name}{count}"), self.weights(f"{name}1"))
        self.succeed(ranks(2, self.command("uncached", *MIXED, "--full-decode")))
        self.assertEqual(self.weights("uncached"), self.weights("mixed1"), "the cache changes no pixel")

    def test_other_precisions_train_on_mixed_batches(self):
        for precision in ("f64", "bf16-emulated"):
            with self.subTest(precision):
                self.succeed(ranks(2, self.command(precision, *MIXED, "--precision", precision)))

    def test_records_train_the_same_and_go_on_in_the_middle_of_an_epoch(self):
        self.pack()
        self.succeed(ranks(2, self.command("folder", *MIXED)))
        self.succeed(ranks(2, self.command("records", *MIXED, dataset="records")))
        self.assertEqual(self.weights("records"), self.weights("folder"))
        blocks = [*MIXED, *CHANGES, "--shuffle-block", 4]
        self.succeed(ranks(2, self.command("whole", *blocks, dataset="records")))
        self.assertNotEqual(self.weights("whole"), self.weights("records"))
        self.succeed(ranks(2, self.command("parts", *blocks, "--max-steps", 5, "--checkpoint-every-steps", 1, dataset="records")))
        self.succeed(ranks(3, self.command("parts", *blocks, "--resume", "auto", dataset="records")))
        self.assertEqual(self.weights("parts"), self.weights("whole"))

    def test_a_checkpoint_says_how_a_prediction_reads_images(self):
        result = self.succeed(ranks(2, self.command("run", "--val-resize-size", 40, "--mean", "0.5,0.4,0.3", "--std", 0.25)))
        self.assertIn("data: folder: 30 training and 9 evaluation samples, 3 classes", result.output)
        self.assertIn("normalised by mean 0.5 0.4 0.3 and deviation 0.25 0.25 0.25, given", result.output)
        record = self.state_of("run")["metadata"]["data"]["images"]
        self.assertEqual(record["class_names"], ["ant", "bee", "cat"])
        self.assertEqual((record["height"], record["width"], record["size"], record["eval_resize"]), (32, 32, 32, 40))
        self.assertEqual([round(value, 6) for value in record["mean"] + record["std"]], [0.5, 0.4, 0.3, 0.25, 0.25, 0.25])
        lines = [json.loads(line) for line in (self.scratch / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertTrue(all("accuracy" in line for line in lines if line["split"] == "eval"), lines)
        # --image-size decides which pixels the weights have seen.
        pixels = ["--mean", "0.5,0.4,0.3", "--std", 0.25]
        self.fail_with(ranks(2, self.command("run", *pixels, "--image-size", 40, "--val-resize-size", 40, "--resume", "auto", "--epochs", 3)),
                       "--image-size was 32, this run has 40")
        self.fail_with(ranks(2, self.command("run", "--val-resize-size", 40, "--resume", "auto", "--epochs", 3)),
                       "pass --mean 0.5,0.4,0.3 as before")

    def test_a_checkpoint_evaluates_and_predicts(self):
        self.succeed(ranks(2, self.command("run", *MIXED, "--mean-std", "measured")))
        run = self.scratch / "run"
        self.succeed(ranks(2, program("lockstep", "evaluate", run, "--data-dir", self.images)))
        evaluated = json.loads((run / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertEqual(evaluated["data"], {"dataset": "folder", "data_dir": str(self.images)})
        trained = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines() if '"eval"' in line][-1]
        self.assertAlmostEqual(evaluated["loss"], trained["loss"], places=5)
        new = self.scratch / "new"
        for i in range(7):
            write_image(new / f"{i}", 50 + i, 70 - i, ((200, 60, 60), (60, 200, 60))[i % 2], i)
        for count in (1, 2):
            self.succeed(ranks(count, program("lockstep", "predict", run, "--data-dir", new, "--output", self.scratch / f"new{count}.csv")))
        rows = (self.scratch / "new1.csv").read_text().splitlines()
        self.assertEqual(rows[0], "index,file,class,name,probability_ant,probability_bee,probability_cat")
        self.assertEqual(len(rows), 8)
        for i, row in enumerate(line.split(",") for line in rows[1:]):
            self.assertEqual(int(row[0]), i)
            self.assertEqual(pathlib.Path(row[1]).parent, new)
            self.assertTrue(pathlib.Path(row[1]).exists(), row)
            self.assertEqual(row[3], ["ant", "bee", "cat"][int(row[2])])
        self.assertEqual(len({line.split(",")[1] for line in rows[1:]}), 7)
        # In HDF5 the metadata name the classes and the weights.
        self.succeed(ranks(2, program("lockstep", "predict", run, "--data-dir", new, "--output", self.scratch / "new.h5")))
        self.assertIn(b'"class_names":["ant","bee","cat"]', (self.scratch / "new.h5").read_bytes())
        self.assertEqual((self.scratch / "new2.csv").read_text(), (self.scratch / "new1.csv").read_text())

    def test_an_unreadable_file_stops_the_run_or_is_replaced(self):
        (self.images / "train" / "bee" / "02.png").write_bytes(b"\x89PNG\r\n\x1a\n no image")
        result = self.run_command(ranks(2, self.command("stopped")), support.SOON)
        self.assertNotEqual(result.status, 0, result)
        self.assertIn("1 of 39 image files are damaged: ", result.output)
        self.assertIn("train/bee/02.png", result.output)
        self.assertNotIn("model: ", result.output, "before the model is built")
        self.expect_no_process()
        result = self.run_command(program("lockstep-data", "check", "folder", "--data-dir", self.images, "--image-size", 32))
        self.assertEqual(result.status, 1, result)
        self.assertEqual(result.output.count("training: cannot be read: "), 1, result)
        self.assertIn("1 of 30 training and 0 of 9 evaluation samples cannot be read", result.output)
        for count in (1, 2):
            result = self.succeed(ranks(count, self.command(f"replaced{count}", "--unreadable", "replace")))
            self.assertIn("train/bee/02.png", result.output)
            self.assertIn("is replaced by the next one", result.output)
        self.assertEqual(self.weights("replaced2"), self.weights("replaced1"))

    def test_mistakes_are_named(self):
        (self.images / "train" / "dog").mkdir()
        empty = self.scratch / "empty"
        (empty / "train").mkdir(parents=True)
        (empty / "val").mkdir()
        for more, words in ((("--data-dir", self.scratch / "absent"), ("absent: no such folder",)),
                            (("--data-dir", empty), ("no folders, expected one for each class",)),
                            ((), ("train/dog: no .jpg, .jpeg or .png file",)),
                            (("--dataset", "records"), ("no train.index", "lockstep pack")),
                            (("--model", "resnet51"), ("--model is 'resnet51'", "did you mean resnet50?")),
                            (("--image-size", 0, "--val-resize-size", 40), ("--val-resize-size is 40 without --image-size",)),
                            (("--crop-scale", "0.5,0.1"), ("--crop-scale is 0.5,0.1",)),
                            (("--auto-augment", "augmix"), ("--auto-augment is 'augmix', expected one of none, ra",))):
            with self.subTest(more):
                result = self.run_command(ranks(2, self.command("wrong", *more)), support.SOON)
                self.assertNotEqual(result.status, 0, result)
                for word in words:
                    self.assertIn(word, result.output, result)
                self.expect_no_process()
        (self.images / "train" / "dog").rmdir()
        self.fail_with(ranks(3, self.command("wrong", "--image-size", 0)), "expected 60 x 40 (rows x columns)")


if __name__ == "__main__":
    support.main()
