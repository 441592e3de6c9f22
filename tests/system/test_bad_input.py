"""What cannot be trained ends the job within seconds on all ranks, non-zero, with one message that names it; what is wrong with the command line
alone with status 2."""

import os
import shutil
import struct
import subprocess

import support
from support import by_rank, program, ranks

SMALL = ["--threads", 1, "--loaders", 0, "--max-steps", 2, "--batch-size", 8]


ALONE = (0,)  # one process without mpirun: for rows whose text does not depend on ranks, beside those that show that all ranks end


class Table(support.SystemTest):
    def expect(self, name, arguments, *fragments, trainer="train_mnist", status=None, sizes=(2,)):
        for size in sizes:
            with self.subTest(name, ranks=size):
                output = [] if "--output" in arguments else ["--output", self.scratch / "run"]
                command = program(trainer, *arguments, *output)
                self.fail_with(ranks(size, command) if size else command, *fragments, status=status)


class Data(Table):
    IMAGES, LABELS = 40, 8

    def mnist(self, name, change=None):
        """A small data set in MNIST's files; `change` spoils one of them."""
        folder = self.scratch / name
        folder.mkdir()
        for part in ("train", "t10k"):
            pixels = bytes((i * 7) % 256 for i in range(self.IMAGES * 28 * 28))
            (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, self.IMAGES, 28, 28) + pixels)
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, self.IMAGES) + bytes(i % 10 for i in range(self.IMAGES)))
        if change is not None:
            file, spoil = change
            (folder / file).write_bytes(spoil((folder / file).read_bytes()))
        return ["--dataset", "mnist", "--data-dir", folder, *SMALL]

    def test_whole_files_are_read(self):
        self.succeed(ranks(2, program("train_mnist", *self.mnist("whole"), "--output", self.scratch / "run")))

    def test_mnist(self):
        images, labels = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
        self.expect("missing folder", ["--dataset", "mnist", "--data-dir", self.scratch / "absent", *SMALL], f" in {self.scratch / 'absent'}, ")
        self.expect("truncated", self.mnist("truncated", (images, lambda b: b[:-500])), f"{images}] truncated: ", sizes=(1, 3))
        self.expect("magic", self.mnist("magic", (images, lambda b: b"\0\0\x08\x01" + b[4:])), "magic number 0x00000801, expected 0x00000803")
        self.expect("label", self.mnist("label", (labels, lambda b: b[:12] + b"\x0c" + b[13:])), "record 4 has label 12, expected 0 to 9")
        self.expect("counts", self.mnist("counts", (labels, lambda b: struct.pack(">II", 0x801, 39) + b[8:-1])), "39 labels, but ")
        self.expect("batch", [*self.mnist("batch")[:-1], 21], "--batch-size is 21 on 2 ranks (a global batch of 42), expected at most the 40", status=2)
        self.assertEqual([name for name in self.files(self.scratch) if name.startswith("run/metrics")], [])

    def test_cifar(self):
        folder = self.scratch / "cifar"
        folder.mkdir()
        names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
        for name in names:
            (folder / name).write_bytes((b"\x03" + bytes(3072)) * 10)
        self.expect("short", ["--dataset", "cifar10", "--data-dir", folder, *SMALL], "data_batch_1.bin] truncated: ", trainer="train_toy")
        self.expect("no file", ["--dataset", "cifar10", "--data-dir", self.scratch, *SMALL], "data_batch_1.bin", trainer="train_toy")
        for name in names:
            os.truncate(folder / name, 10000 * 3073)  # whole; zeros take no space on the disk
        (folder / "data_batch_3.bin").unlink()
        self.expect("one file absent", ["--dataset", "cifar10", "--data-dir", folder, *SMALL], "data_batch_3.bin", trainer="train_toy")


class Options(Table):
    def test_that_contradict(self):
        built_in = ["--limit-train", 64, "--limit-eval", 16]
        for name, arguments, fragment in [
                ("batch", ["--global-batch", 65, "--limit-train", 64], "--limit-train is 64, expected at least one global batch of 65 samples"),
                ("global batch", [*built_in, "--batch-size", 8, "--global-batch", 15], "--batch-size 8 times 2 ranks times --accumulate 1 makes 16"),
                ("empty shards", [*built_in, "--batch-size", 8, "--shards", 1000000],
                 "--shards is 1000000 with a global batch of 16 samples, expected at most one shard per sample"),
                ("lost by rounding", [*built_in, "--batch-size", 8, "--lr", "1e-320"], "--lr is 1e-320, which is 0 in f32"),
                ("margin", [*built_in, "--batch-size", 8, "--time-limit", "1m", "--time-margin", "2m"], "--time-margin is 2m with --time-limit 1m, expected less"),
                ("shards", [*built_in, "--shards", 1], "--shards is 1 with 2 ranks, expected at least one shard per rank"),
                ("nesterov", [*built_in, "--nesterov", "--optimizer", "adam"], "--nesterov: is for --optimizer sgd"),
                ("endless", [*built_in, "--batch-size", 8, "--epochs", 0], "--epochs and --max-steps are both 0"),
                ("data folder", ["--dataset", "mnist"], "--data-dir is missing"),
                ("limit", ["--limit-train", 10 ** 7], "10000000, expected 0 (all) to 12000"),
                ("nothing to resume", [*built_in, "--resume", ""], "--resume: is empty, expected auto|FILE; omit the option for none"),
                ("no weights", [*built_in, "--weights", ""], "--weights: is empty, expected FILE"),
        ]:
            self.expect(name, arguments, fragment, status=1 if name == "limit" else 2,
                        sizes=(2,) if name in ("batch", "global batch", "empty shards", "shards") else ALONE)
        self.expect("depth", ["--dataset", "digits", "--depth", 21], "there is no depth 21; depths: ", trainer="train_resnet", sizes=(1, 2, 3), status=2)
        self.expect("stem", ["--dataset", "digits", "--depth", 20, "--stem", "imagenet"], "depth 20 is for small images and always has the cifar stem",
                    trainer="train_resnet", status=2, sizes=ALONE)

    def test_that_train_on_nothing(self):
        # The last stage of this network has maps of 1x1 here: a batch norm that sees one sample has one value per channel.
        resnet = ["--dataset", "digits", "--depth", 18, "--stem", "imagenet", "--limit-eval", 16, "--threads", 1, "--loaders", 0]
        self.expect("batch", [*resnet, "--batch-size", 1], "[batch_norm2d] layer4.0.bn1: input is (1, 512, 1, 1), one value per channel",
                    trainer="train_resnet", sizes=(1, 2))
        short = [*resnet, "--limit-train", 9, "--batch-size", 2, "--epochs", 1]
        self.expect("last batch", short, "[batch_norm2d] layer4.0.bn1: a batch of 1 sample in 2 parts", "--remainder drop",
                    trainer="train_resnet", status=2)
        output = ["--output", self.scratch / "run"]
        self.succeed(ranks(2, program("train_resnet", *short, "--remainder", "drop", *output)))
        self.succeed(ranks(2, program("train_resnet", *short, "--max-steps", 1, *output)))  # ends before its last batch

    def test_that_cannot_be(self):
        for name, arguments, fragment in [
                ("unknown", ["--learning-rate", 0.1], "--learning-rate"),
                ("no value", ["--lr"], "--lr"),
                ("not a number", ["--lr", "fast"], "--lr: is fast, expected a number"),
                ("model", ["--model", "transformer"], "--model is 'transformer', expected one of mlp, convnet"),
                ("config", ["--config", self.scratch / "absent.toml"], str(self.scratch / "absent.toml")),
        ]:
            self.expect(name, arguments, fragment, status=2, sizes=(2,) if name == "unknown" else ALONE)
        for name, arguments, fragment in [
                ("data set", ["--dataset", "imagenet"], "--dataset is 'imagenet', expected one of "),
                ("rate", ["--lr", 0], "--lr is 0, expected a number above 0"),
                ("accumulate", ["--accumulate", 0], "--accumulate is 0, expected a number at least 1"),
                ("path", ["--allreduce", "bogus"], "--allreduce is 'bogus', expected one of "),
                ("retention", ["--keep", "best"], "--keep is 'best', expected "),
                ("time", ["--time-limit", "soon"], "--time-limit is 'soon'"),
        ]:
            self.expect(name, arguments, fragment, status=2, sizes=(2,) if name == "data set" else ALONE)

    def test_that_differ_between_ranks(self):
        common = ["--dataset", "digits", *SMALL, "--output", self.scratch / "run"]
        left, right = program("train_mnist", *common, "--lr", 0.1), program("train_mnist", *common, "--lr", 0.2)
        result = self.fail_with(ranks(2, by_rank(left, right)), "the options must be the same on all ranks")
        self.assertRegex(result.output, r"rank 0 \(host .*\) has '.*\"lr\": 0.1.*rank 1 \(host .*\) has '.*\"lr\": 0.2")
        # Also in where they write; else each would log in a folder of its own.
        left, right = (program("train_mnist", "--dataset", "digits", *SMALL, "--output", self.scratch / name) for name in ("one", "two"))
        result = self.fail_with(ranks(2, by_rank(left, right)), "the options must be the same on all ranks")
        self.assertRegex(result.output, rf"rank 0 \(host .*\) has '.*\"output\": \"{self.scratch}/one\".*rank 1 \(host .*\) has '.*\"output\": \"{self.scratch}/two\"")
        self.assertEqual(list(self.scratch.iterdir()), [])
        # In these they may differ: what a node has, and what concerns one process alone.
        common = ["--dataset", "digits", *SMALL, "--limit-train", 64, "--limit-eval", 16, "--output", self.scratch / "own"]
        own = ["--loaders", 1, "--threads", 2, "--quiet", "--profile", "--time-limit", "1h", "--time-margin", "10s", "--data-dir", self.scratch]
        self.succeed(ranks(2, by_rank(program("train_mnist", *common), program("train_mnist", *common, *own))))
        common = ["--dataset", "digits", *SMALL, "--output", self.scratch / "run"]
        left = program("train_mnist", *common, "--lr", 0.1)
        # One rank's command line cannot even be read.
        wrong = program("train_mnist", *common, "--no-such-option")
        result = self.fail_with(ranks(2, by_rank(left, wrong)), "--no-such-option")
        self.assertIn("rank 1", result.output)
        self.assertEqual(result.status, 2, result)
        self.fail_with(ranks(2, by_rank(wrong, left)), "--no-such-option")
        self.assertFalse((self.scratch / "run").exists())


class Tools(support.SystemTest):
    """What is no training run: --help, --version and the subcommands of `lockstep`."""

    def full(self, command, status=1):
        with open("/dev/full", "w") as full:
            result = subprocess.run(list(map(str, command)), stdout=full, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, timeout=support.LIMIT,
                                    cwd=self.scratch, env=support.launch_environment())
        self.assertEqual(result.returncode, status, f"{command}\n{result.stderr}")
        self.assertEqual(result.stderr.count("stdout cannot be written"), 1, f"{command}\n{result.stderr}")

    def test_text_that_does_not_reach_stdout_is_a_failure(self):
        for name in ("train_mnist", "train_toy", "train_resnet", "lockstep"):
            for option in ("--help", "--version"):
                with self.subTest(name, option=option):
                    self.full(program(name, option))
                    self.assertEqual(self.succeed(program(name, option)).stderr, "")
        output = self.scratch / "run"
        self.succeed(program("train_mnist", "--model", "mlp", "--limit-train", 64, "--limit-eval", 16, *SMALL, "--output", output))
        saved = support.checkpoints(output)[-1]
        for command in (["models"], ["inspect", "mlp"], ["inspect", "resnet50", "--parameters"], ["inspect", "mlp", "--help"], ["checkpoint", saved],
                        ["run", "--help"]):
            with self.subTest(command=command):
                self.full(program("lockstep", *command))
        for option in ([], ["--json"]):
            self.full(program("lockstep", "compare", saved, saved, *option), status=2)  # 1 would say that they differ

    def test_a_plan_that_no_memory_holds_is_refused_at_once(self):
        result = self.fail_with(program("lockstep", "inspect", "resnet50", "--batch", 999999999, "--plan"),
                                "[inspect] a batch of 999999999 samples: the output (999999999, ", status=1)
        self.assertIn("needs a smaller --batch", result.stderr)
        self.succeed(program("lockstep", "inspect", "resnet50", "--batch", 999999999, "--summary"))
        self.succeed(program("lockstep", "inspect", "toy", "--batch", 2, "--plan"))
        self.fail_with(program("lockstep", "inspect", "mlp", "--batch", "010"), "--batch: is 010, expected a whole number without leading zeros", status=2)


class Output(Table):
    def test_that_cannot_be_written(self):
        small = ["--limit-train", 64, "--limit-eval", 16, *SMALL]
        file = self.scratch / "precious"
        file.write_text("keep me")
        self.expect("below a file", [*small, "--output", file / "run"], str(file))
        self.expect("a file", [*small, "--output", file], str(file))
        self.expect("proc", [*small, "--output", "/proc/lockstep"], "/proc/lockstep")
        self.assertEqual(file.read_text(), "keep me")

    def test_what_is_no_file_of_its_own_is_refused(self):
        small = ["--limit-train", 64, "--limit-eval", 16, *SMALL, "--hash-every", 1]
        precious, run = self.scratch / "precious", self.scratch / "run"
        precious.write_text("keep me")
        plant = {"a symbolic link": lambda path: path.symlink_to(precious), "a named pipe": os.mkfifo}
        for name in (".lock", "run.json", "metrics.jsonl", "dllogger.json", "hashes.jsonl", "logs/rank-0000.log", "logs/rank-0001.log"):
            for (kind, make), resume in zip(plant.items(), ([], ["--resume", "auto"])):
                (run / name).parent.mkdir(parents=True)
                make(run / name)
                self.expect(f"{name}, {kind}", [*small, *resume, "--output", run],
                            f"{run / name} is {kind}, expected a regular file or none: remove it",
                            sizes=(2,) if name in ("metrics.jsonl", "logs/rank-0001.log") else ALONE)
                shutil.rmtree(run)
        for kind, make in plant.items():
            make(self.scratch / "trace")
            self.expect(f"trace, {kind}", [*small, "--trace", self.scratch / "trace"], f"[trace] {self.scratch / 'trace'} is {kind}, ", sizes=ALONE)
            (self.scratch / "trace").unlink()
        self.assertEqual(precious.read_text(), "keep me")

    def test_a_file_that_cannot_be_written_leaves_the_earlier_run(self):
        run = self.scratch / "run"
        small = ["--limit-train", 64, "--limit-eval", 16, *SMALL, "--output", run]
        self.succeed(ranks(2, program("train_mnist", *small)))
        before = self.files(run)
        self.assertTrue(any(name.startswith("checkpoints/") for name in before))
        os.mkfifo(run / "hashes.jsonl")
        for resume in ([], ["--resume", "auto"]):
            self.expect("hashes", [*small, *resume, "--hash-every", 1], f"{run / 'hashes.jsonl'} is a named pipe, ")
        (run / "hashes.jsonl").unlink()
        self.expect("trace", [*small, "--trace", self.scratch], f"[trace] {self.scratch} is a folder, ")
        self.assertEqual(self.files(run).keys(), before.keys())
        self.assertTrue(self.files(run) == before)
        result = self.succeed(ranks(2, program("train_mnist", *small, "--max-steps", 3, "--resume", "auto")))
        self.assertIn("at step 2, ", result.output)

    def test_a_folder_behind_a_link_is_a_folder(self):
        (self.scratch / "real").mkdir()
        (self.scratch / "link").symlink_to(self.scratch / "real")
        small = ["--limit-train", 64, "--limit-eval", 16, *SMALL, "--output", self.scratch / "link"]
        self.succeed(ranks(2, program("train_mnist", *small)))
        self.succeed(ranks(2, program("train_mnist", *small, "--resume", "auto")))
        self.assertTrue((self.scratch / "real" / "run.json").exists())

    def test_a_cache_of_autotune_that_is_a_pipe_is_named_and_left(self):
        cache = self.scratch / "lockstep" / "kernels.json"
        cache.parent.mkdir()
        os.mkfifo(cache)
        small = ["--limit-train", 64, "--limit-eval", 16, *SMALL, "--autotune", "--output", self.scratch / "run"]
        result = self.succeed(ranks(2, program("train_mnist", "--model", "mlp", *small)), environment=support.clean_environment(XDG_CACHE_HOME=str(self.scratch)))
        self.assertIn(f"autotune: '{cache}' cannot be read: ", result.output)
        self.assertTrue(cache.is_fifo(), result)
        self.assertIn(f"{cache} is a device, pipe or socket, expected a regular file to replace", result.output)

    def test_weights_that_the_hdf5_library_does_not_survive(self):
        # libhdf5 1.10 frees what it never wrote: where the library crashes, the child process that reads does, and the ranks say so.
        file = support.SOURCE / "tests" / "fuzz" / "corpus" / "weights" / "uninitialised-links.h5"
        self.expect("crash", ["--limit-train", 64, "--limit-eval", 16, *SMALL, "--weights", file], f"{file}: ", sizes=(1, 3))

    def test_a_run_that_cannot_start_leaves_the_earlier_one(self):
        run = ["--limit-train", 64, "--limit-eval", 16, *SMALL, "--output", self.scratch / "run"]
        self.succeed(ranks(2, program("train_mnist", *run)))
        before = self.files(self.scratch / "run")
        self.assertTrue(any(name.startswith("checkpoints/") for name in before))
        self.expect("model", [*run, "--dataset", "digits", "--depth", 21], "there is no depth 21", trainer="train_resnet")
        self.expect("options", [*run, "--shards", 1], "--shards is 1")
        self.expect("data", [*run, "--dataset", "mnist", "--data-dir", self.scratch], "no train-images-idx3-ubyte or ")
        self.expect("resume", [*run, "--resume", self.scratch / "absent.h5"], "absent.h5: open: ")
        self.assertEqual(self.files(self.scratch / "run"), before)


class Names(Table):
    """What comes out of files and paths reaches a terminal as text, not as what it would obey."""

    EVIL, SHOWN = "\x1b[31m\x9b2J", r"\x1b[31m\xc2\x9b2J"  # ESC [ 3 1 m, and C1's CSI

    def expect_text(self, result):
        self.assertNotRegex(result.output, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        self.assertIn(self.SHOWN, result.output)

    def test_of_tensors(self):
        output = self.scratch / "run"
        self.succeed(program("train_mnist", "--model", "mlp", "--limit-train", 64, "--limit-eval", 16, *SMALL, "--output", output))
        file = support.checkpoints(output)[-1]
        name = next(n for n in self.state(file)["tensors"] if n.startswith("model/") and n.endswith(".weight"))
        self.succeed(program("lockstep", "compare", file, file))
        other = self.scratch / "other.h5"
        other.write_bytes(file.read_bytes())
        self.succeed(program("system_state", other, "rename", name, f"model/{self.EVIL}fc.weight"))
        self.expect_text(self.succeed(program("lockstep", "checkpoint", other)))
        self.expect_text(self.run_command(program("lockstep", "compare", file, other)))
        self.expect_text(self.run_command(program("train_mnist", "--model", "mlp", "--limit-train", 64, "--limit-eval", 16, *SMALL, "--output", output,
                                                  "--resume", other)))

    def test_of_paths_and_options(self):
        self.expect_text(self.run_command(program("train_mnist", "--dataset", "mnist", "--data-dir", self.scratch / self.EVIL, "--output", self.scratch / "run")))
        self.expect_text(self.run_command(program("train_mnist", f"--{self.EVIL}")))
        self.expect_text(self.run_command(program("lockstep", "checkpoint", self.scratch / self.EVIL)))
        self.expect_text(self.run_command(program("lockstep", "inspect", "mlp", f"--{self.EVIL}")))
        output = self.scratch / f"run{self.EVIL}"
        result = self.succeed(program("train_mnist", "--model", "mlp", "--limit-train", 64, "--limit-eval", 16, *SMALL, "--resume", "auto", "--output", output))
        self.expect_text(result)  # no checkpoint in that folder yet

    def test_a_folder_whose_name_is_no_utf8(self):
        name = b"r\xfcn"
        output = os.fsdecode(os.fsencode(self.scratch) + b"/" + name)
        command = ranks(2, program("train_mnist", "--model", "mlp", "--limit-train", 64, "--limit-eval", 16, *SMALL, "--resume", "auto", "--output", output))
        result = self.succeed(command)
        self.assertIn("r\\xfcn/checkpoints", result.output)  # none there yet
        self.assertEqual(sorted(os.listdir(os.fsencode(self.scratch))), [name])
        self.assertEqual(len(support.checkpoints(output)), 1)
        result = self.succeed([*command, "--max-steps", "3"])
        self.assertIn("r\\xfcn/checkpoints/step-0000000002.h5 at step 2", result.output)
        saved = support.checkpoints(output)[-1]
        self.assertIn("verified", self.succeed(program("lockstep", "checkpoint", saved)).stdout)
        self.succeed(program("lockstep", "compare", output, output))


if __name__ == "__main__":
    support.main()
