"""The files of models/recipes: which program each is for, what it sets, and how a test shortens it."""

import os
import re
import tomllib
from pathlib import Path

from support import SOURCE, program

FOLDER = SOURCE / "models" / "recipes"
FILES = sorted(FOLDER.glob("*.toml"))


def command_of(recipe):
    """The words of the command that the recipe shows in its first lines."""
    return re.search(r"^#   (mpirun .*)$", recipe.read_text(), re.M)[1].split()


def program_of(recipe):
    words = command_of(recipe)
    return words[words.index("--config") - 1]


def generate_command(recipe, folder, samples):
    """The command that computes the recipe's data, shown in its first lines, but for fewer samples and another folder; None without one."""
    found = re.search(r"^#   lockstep-data (generate .*)$", recipe.read_text(), re.M)
    if found is None:
        return None
    words = found[1].replace("$LOCKSTEP_DATA_DIR", str(folder)).split()
    words[words.index("--samples") + 1] = str(samples)
    return program("lockstep-data", *words)


def values_of(recipe):
    return tomllib.loads(recipe.read_text())


def data_options(recipe):
    """The recipe's own data if they are built in or LOCKSTEP_TEST_DATA has them, else others that are built in."""
    if values_of(recipe)["dataset"] == "corpus":
        return []
    folder = Path(os.environ.get("LOCKSTEP_TEST_DATA", "/nonexistent"))
    name = values_of(recipe)["dataset"]
    if name == "clicks":
        return []
    if (folder / {"cifar10": "cifar-10-batches-bin", "mnist": "mnist"}[name]).exists():
        return ["--data-dir", folder]
    return ["--dataset", "synthetic" if name == "cifar10" else "digits"]


def shortened(recipe, samples, steps, *options, data=None):
    """The recipe's options, but of so many samples an update, for so many updates. `data`: options of its data set."""
    return ["--config", recipe, *(data_options(recipe) if data is None else data), "--limit-train", samples * steps, "--limit-eval", 8, "--global-batch", samples, "--epochs", 1,
            "--warmup-epochs", 0, "--threads", 1, "--loaders", 0, "--log-every", 1, "--logger", "dllogger", *options]
