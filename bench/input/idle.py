#!/usr/bin/env python3
"""How long training waits for images: idle.py TRAIN_IMAGES [--ranks N] [--steps N] [-- OPTION...].

Trains ResNet-50 at 224 x 224 on JPEGs of 500 x 375 pixels in a temporary folder, with one computing and one loader thread for each
rank, and prints the part of each rank's steps in which it waited for the loader. Further options go to train_images.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from decode import make_folder

STEP = re.compile(r"update (\d+): .* batch after ([\d.]+) ms, computing ([\d.]+) ms, waiting ([\d.]+) ms")
FIRST = 3  # steps that are left out: the loader begins with them


def shares(log):
    """The parts of waiting for the loader, and the milliseconds of a step, of the steps of one rank."""
    steps = [tuple(map(float, match.groups())) for match in STEP.finditer(log.read_text())]
    steps = [step for step in steps if step[0] > FIRST]
    whole = sum(sum(step[1:]) for step in steps)
    return sum(step[1] for step in steps) / whole, whole / len(steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="train_images of the build")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("options", nargs="*", help="after --: options of train_images")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for split, count in (("train", arguments.images), ("val", 4)):
            (root / split).mkdir()
            make_folder(root / split, count)
        command = ["mpirun", "-n", str(arguments.ranks), "--bind-to", "none", "--oversubscribe", str(arguments.program.resolve()), "--data-dir", scratch,
                   "--model", "resnet50", "--image-size", "224", "--batch-size", "8", "--threads", "1", "--loaders", "1", "--warmup-epochs", "0",
                   "--epochs", "0", "--max-steps", str(arguments.steps), "--eval-every", "0", "--checkpoint-every", "0", "--log-level", "trace", "--quiet",
                   "--output", str(root / "run"), *arguments.options]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            sys.exit(f"idle.py: this command failed: {' '.join(command)}")
        for log in sorted((root / "run" / "logs").glob("rank-*.log")):
            share, step = shares(log)
            print(f"{log.stem}: {100 * share:.2f}% of {step:.0f} ms a step waiting for images")


if __name__ == "__main__":
    main()
