"""--bits portable: losses and weights equal, bit for bit, for any ranks, threads and level of instructions.

LOCKSTEP_PEER_BIN may name the folders of programs of other builds (of another compiler, MPI or processor), as PATH
does: the same runs by each of them must then have the same bits. Those of another MPI are started by its own mpirun.
"""

import array
import functools
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import support
from support import checkpoints, clean_environment, metrics, program, ranks

FEW = ["--loaders", 0, "--log-every", 1, "--hash-every", 1, "--schedule", "constant", "--eval-every", 0, "--checkpoint-every", 0,
       "--checkpoint-every-steps", 1000, "--shards", 4, "--bits", "portable", "--no-preflight", "--quiet"]
MODELS = {
    "resnet": ["train_resnet", "--depth", 20, "--dataset", "digits", "--limit-train", 32, "--limit-eval", 8, "--global-batch", 8, "--lr", 0.05],
    "lenet": ["train_toy", "--dataset", "digits", "--limit-train", 64, "--limit-eval", 8, "--global-batch", 8, "--augment"],
    "mlp": ["train_mnist", "--model", "mlp", "--limit-train", 64, "--limit-eval", 8, "--epochs", 20, "--global-batch", 16, "--optimizer", "adam", "--augment"],
    "unet": ["train_fields", "--dataset", "arrays", "--inputs", "u.npy", "--targets", "same=u.npy", "--width", 4, "--global-batch", 8, "--eval-fraction", 0.25,
             "--warmup-epochs", 0],
    "gpt": ["train_gpt", "--layers", 1, "--heads", 2, "--width", 16, "--context", 24, "--corpus-samples", 40, "--limit-eval", 5, "--dropout", 0.1,
            "--global-batch", 8, "--warmup-epochs", 0],
    "recsys": ["train_recsys", "--click-samples", 96, "--click-eval-samples", 20, "--click-fields", 3, "--click-ids", 20, "--dim", 4, "--top", "8",
               "--bottom", "8", "--global-batch", 16, "--warmup-epochs", 0],
}
# Each number of ranks and threads and each level; other models have other pairs of them.
CHEAP = [(1, 1, "baseline"), (2, 2, "avx2"), (3, 3, "avx512")]


def peers():
    return [Path(folder) for folder in os.environ.get("LOCKSTEP_PEER_BIN", "").split(":") if folder]


def command_of(binaries, name, *options):
    """Of this build, or of the one whose programs are in the folder `binaries`."""
    command = [str(word) for word in program(name, *options)]
    return [str(binaries / Path(command[0]).name), *command[1:]] if binaries else command


def mpi_of(binaries):
    """What Debian calls the programs of the MPI that these are linked with."""
    linked = subprocess.run(["readelf", "--dynamic", binaries / "train_toy"], capture_output=True, text=True, check=True, timeout=100).stdout
    return "mpich" if "[libmpich" in linked else "openmpi"


@functools.cache
def levels(binaries=None):
    """Those that the programs have for this processor, slowest first, as they name them themselves."""
    with tempfile.TemporaryDirectory() as output:
        command = command_of(binaries, "train_toy", "--dataset", "synthetic", "--output", output)
        refused = subprocess.run(command, env=clean_environment(LOCKSTEP_ISA="none"), capture_output=True, text=True, check=False, timeout=100).stderr
    return re.search(r"expected a level that this machine supports: ([\w, ]+)", refused)[1].split(", ")


def on_levels(runs, binaries=None):
    """The runs, those of a level that this processor has not on its best one."""
    there = levels(binaries)
    return list(dict.fromkeys((size, threads, level if level in there else there[-1]) for size, threads, level in runs))


class Portable(support.SystemTest):
    STEPS = 3

    def setUp(self):
        super().setUp()
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (32, 16, 16), }"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        values = array.array("f", [((i * 7919) % 211) / 105 - 1 for i in range(32 * 256)])
        (self.scratch / "u.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes())

    def command(self, model, output, threads, *more, steps=None, binaries=None):
        name, *options = MODELS[model]
        if model == "unet":
            options += ["--data-dir", self.scratch]
        return command_of(binaries, name, *options, *FEW, "--max-steps", steps or self.STEPS, "--threads", threads, *more, "--output", output)

    def bits(self, output):
        hashed = (output / "hashes.jsonl").read_text()
        self.assertEqual(hashed.count("\n"), self.STEPS + 1)
        return metrics(output), hashed, self.state(checkpoints(output)[-1])["tensors"]

    def launcher_of(self, binaries):
        """PATH with that MPI's mpirun first."""
        name = mpi_of(binaries)
        links = {"mpirun": f"mpirun.{name}"} | ({"hydra_pmi_proxy": "hydra_pmi_proxy"} if name == "mpich" else {})
        folder = self.scratch / f"programs-{name}"
        folder.mkdir(exist_ok=True)
        for link, target in links.items():
            found = shutil.which(target)
            self.assertIsNotNone(found, f"{target} is not in PATH, expected for the programs in {binaries}")
            if not (folder / link).exists():
                (folder / link).symlink_to(found)
        return f"{folder}:{os.environ['PATH']}"

    def run_one(self, model, size, threads, level, binaries=None):
        of_peer = "" if binaries is None else "-" + str(binaries).strip("/").replace("/", "-")
        output = self.scratch / f"{model}-{size}-{threads}-{level}{of_peer}"
        command = self.command(model, output, threads, binaries=binaries)
        launcher = {"PATH": self.launcher_of(binaries)} if binaries else {}
        self.succeed(ranks(size, command), environment=clean_environment(LOCKSTEP_ISA=level, **launcher))
        return self.bits(output)

    def expect_the_same(self, model, runs):
        runs = list(runs)
        own = on_levels(runs)
        self.assertGreater(len(own), 1, "runs to compare, expected several")
        reference = self.run_one(model, *own[0])
        others = [(run, None) for run in own[1:]] + [(run, peer) for peer in peers() for run in on_levels(runs, peer)]
        for run, peer in others:
            found = self.run_one(model, *run, binaries=peer)
            for mine, theirs in zip(found, reference):
                self.assertEqual(mine, theirs, f"{model}: ranks, threads, level {run} {f'of {peer} ' if peer else ''}and {own[0]}")


class Pairs(Portable):
    """In seconds: all levels of each model, with other ranks and threads each time."""

    def test_resnet(self):
        self.expect_the_same("resnet", CHEAP)

    def test_lenet(self):
        self.expect_the_same("lenet", [(2, 2, "avx512"), (4, 1, "baseline")])

    def test_mlp(self):
        self.expect_the_same("mlp", [(2, 1, "avx512"), (1, 3, "baseline")])

    def test_unet(self):
        self.expect_the_same("unet", [(3, 2, "baseline"), (1, 1, "avx512")])

    def test_gpt(self):
        self.expect_the_same("gpt", [(1, 2, "baseline"), (4, 1, "avx512")])

    def test_recsys(self):
        self.expect_the_same("recsys", [(3, 1, "baseline"), (1, 2, "avx2")])


class Promise(Portable):
    def test_resume_elsewhere_and_what_breaks_the_promise(self):
        whole = self.run_one("mlp", 1, 1, levels()[0])
        output = self.scratch / "parts"
        begin = self.command("mlp", output, 2, steps=2)
        self.succeed(ranks(2, begin), environment=clean_environment(LOCKSTEP_ISA=levels()[-1]))
        self.assertEqual(self.state(checkpoints(output)[-1])["metadata"]["bits"], "portable")
        resume = self.command("mlp", output, 1, "--resume", "auto")
        fast = [word if word != "portable" else "fast" for word in resume]
        self.fail_with(fast, "--bits was portable, this run has fast", "--change-bits to go on with other bits")
        self.succeed(ranks(3, resume), environment=clean_environment(LOCKSTEP_ISA=levels()[0]))
        self.assertEqual(self.bits(output), whole)
        other = self.scratch / "fast"
        command = self.command("mlp", other, 1, "--lr", 0.002)
        self.succeed([word if word != "portable" else "fast" for word in command])
        compared = self.run_command(program("lockstep", "compare", "--json", output, other))
        self.assertEqual(compared.status, 1, compared)
        causes = json.loads(compared.stdout)["causes"]
        self.assertIn('--bits: "portable" in the first, "fast" in the second', causes)
        further = self.command("mlp", output, 1, "--resume", "auto", "--change-bits", steps=4)
        self.succeed([word if word != "portable" else "fast" for word in further])

    def test_what_depends_on_the_machine_is_refused(self):
        self.fail_with(self.command("mlp", self.scratch / "run", 1, "--autotune"), "--bits portable with --autotune, expected one of the two")


class Product(Portable):
    """All ranks times threads times levels, 50 steps."""

    STEPS = 50

    def expect_all_the_same(self, model):
        self.expect_the_same(model, itertools.product((1, 2, 3, 4), (1, 2, 3), levels()))

    def test_resnet(self):
        self.expect_all_the_same("resnet")

    def test_lenet(self):
        self.expect_all_the_same("lenet")

    def test_mlp(self):
        self.expect_all_the_same("mlp")

    def test_unet(self):
        self.expect_all_the_same("unet")


if __name__ == "__main__":
    support.main()
