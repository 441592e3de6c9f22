#!/usr/bin/python3
"""Builds two revisions and tells which of the listed training runs compute other bits in the second.

  scripts/compare_revisions.py main                    # main against the working tree
  scripts/compare_revisions.py v0.1 main --only bf16   # two revisions; runs with `bf16` in their name
  scripts/compare_revisions.py --builds A/bin B/bin    # two builds that are there
  scripts/compare_revisions.py --list

A run trains a few steps with --hash-every 1. `lockstep compare` of the second build then compares every tensor after
every update and every element of the last checkpoint; the script compares the losses. Bits depend on the machine, so
nothing is stored: both builds run here. Revisions are built in build/compare/REVISION (ccache makes that fast) and
stay there. Exit status: 0 all equal, 1 some run differs, 2 some run or build failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
TARGETS = ["train_toy", "train_mnist", "train_resnet", "lockstep_tool"]
RUN_LIMIT = 300  # seconds, of one program

COMMON = ["--threads", "1", "--loaders", "1", "--log-every", "1", "--hash-every", "1", "--eval-every", "1", "--checkpoint-every", "0",
          "--checkpoint-every-steps", "1000", "--quiet"]
MODELS = {
    "lenet": ["train_toy", "--dataset", "digits", "--limit-train", "100", "--limit-eval", "20", "--global-batch", "24"],
    "mlp": ["train_mnist", "--model", "mlp", "--limit-train", "200", "--limit-eval", "40", "--global-batch", "48"],
    "convnet": ["train_mnist", "--model", "convnet", "--limit-train", "100", "--limit-eval", "20", "--global-batch", "24", "--augment"],
    "resnet20": ["train_resnet", "--depth", "20", "--dataset", "digits", "--limit-train", "65", "--limit-eval", "8", "--global-batch", "16"],
    "resnet50": ["train_resnet", "--depth", "50", "--stem", "cifar", "--dataset", "digits", "--limit-train", "24", "--limit-eval", "4",
                 "--global-batch", "6"],
}
STEPS = {"lenet": 6, "mlp": 7, "convnet": 6, "resnet20": 6, "resnet50": 2}


class Run:
    """One training: a model, a number of ranks, further options. `until` steps first, then resumed by `resume_ranks` ranks."""

    def __init__(self, model, ranks, *options, until=None, resume_ranks=None):
        self.model, self.ranks, self.options = model, ranks, list(map(str, options))
        self.until, self.resume_ranks = until, resume_ranks
        words = " ".join(self.options).replace("--", "").replace(" ", "-")
        resumed = f" resumed-at-{until}-by-{resume_ranks}" if until else ""
        self.name = f"{model} x{ranks}{' ' + words if words else ''}{resumed}"
        self.steps = STEPS[model]

    def commands(self, output):
        """(ranks, words) of each program that is started, one after the other."""
        program, *model = MODELS[self.model]
        words = [program, *model, *COMMON, *self.options, "--epochs", "3", "--output", str(output)]
        if self.until is None:
            return [(self.ranks, words + ["--max-steps", str(self.steps)])]
        # A schedule ends with the run, at --max-steps: only a constant rate is the same in a part of a run.
        constant = words + ["--schedule", "constant", "--resume", "auto"]
        return [(self.ranks, constant + ["--max-steps", str(self.until)]), (self.resume_ranks, constant + ["--max-steps", str(self.steps)])]


def runs():
    listed = [Run(model, ranks) for model in MODELS for ranks in (1, 2, 3) if (model, ranks) != ("resnet50", 3)]
    listed += [Run(model, ranks, "--precision", "f64") for model, ranks in (("lenet", 2), ("mlp", 1), ("mlp", 3), ("resnet20", 1), ("resnet20", 2))]
    listed += [Run(model, ranks, "--precision", "bf16-emulated")
               for model, ranks in (("lenet", 1), ("mlp", 2), ("resnet20", 1), ("resnet20", 3), ("resnet50", 1))]
    listed += [Run("resnet20", ranks, "--shards", 4) for ranks in (1, 2, 3)]
    listed += [Run("resnet20", 3, "--allreduce", path) for path in ("shared", "hierarchical", "messages")]
    # MPI adds three terms in an order of its own; two terms have one sum.
    listed += [Run("resnet20", 2, "--allreduce", "mpi")]
    listed += [Run("mlp", 3, "--allreduce", "messages", "--overlap", driver) for driver in ("thread", "steps")]
    listed += [
        Run("convnet", 2, "--allreduce", "messages", "--bucket-mb", 0.1),
        Run("convnet", 2, "--no-share-weights"),
        Run("resnet20", 3, "--shard-optimizer", "--optimizer", "adam"),
        Run("mlp", 2, "--wire", "bf16"),
        Run("mlp", 3, "--wire", "f16", "--allreduce", "messages"),
        Run("resnet20", 2, "--sync-bn"),
        Run("resnet20", 3, "--sync-bn", "--accumulate", 2),
        Run("resnet20", 2, "--clip-norm", 0.5),
        Run("lenet", 3, "--clip-norm", 0.5, "--allreduce", "messages"),
        Run("convnet", 2, "--guard-norm", 0.5, "--guard-action", "skip"),
        Run("mlp", 2, "--guard-spike", 1.01, "--guard-action", "log", "--verify-every", 2, "--compare-every", 2),
        Run("convnet", 1, "--accumulate", 3, "--optimizer", "adamw", "--weight-decay", 0.01),
        Run("convnet", 2, "--nesterov", "--remainder", "drop", "--label-smoothing", 0.1),
        Run("mlp", 2, "--topk", 0.1),
        Run("mlp", 2, "--local-steps", 2),
        Run("resnet20", 1, "--conv-math", "exact"),
        Run("resnet20", 2, "--recompute", "blocks"),
        Run("resnet20", 1, "--recompute", "none"),
        Run("lenet", 2, "--schedule", "one-cycle"),
        Run("resnet20", 2, "--shards", 4, until=3, resume_ranks=3),
        Run("convnet", 2, until=2, resume_ranks=2),
        Run("mlp", 3, "--shards", 3, "--optimizer", "adam", until=3, resume_ranks=1),
    ]
    return listed


class Failure(Exception):
    """A build or a run that did not succeed; its text is for the user."""


def checked(words, what, limit=None, **options):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{what}: not finished after {limit} s: {' '.join(words)}") from None
    if done.returncode != 0:
        raise Failure(f"{what}: exit status {done.returncode}: {' '.join(words)}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def build(revision):
    """The folder of the revision's programs; None is the working tree."""
    if revision is None:
        tree, name = SOURCE, "working-tree"
    else:
        commit = checked(["git", "-C", str(SOURCE), "rev-parse", "--verify", f"{revision}^{{commit}}"], f"revision {revision}").strip()
        name = commit[:12]
        tree = SOURCE / "build" / "compare" / name / "source"
        if not tree.is_dir():
            checked(["git", "-C", str(SOURCE), "worktree", "prune"], "git worktree prune")
            checked(["git", "-C", str(SOURCE), "worktree", "add", "--detach", str(tree), commit], f"revision {revision}")
    folder = SOURCE / "build" / "compare" / name / "build"
    began = time.monotonic()
    checked(["cmake", "-S", str(tree), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLOCKSTEP_BUILD_TESTS=OFF",
             "-DLOCKSTEP_BUILD_BENCH=OFF", "-DLOCKSTEP_BUILD_EXAMPLES=OFF", "-DLOCKSTEP_INSTALL=OFF"], f"configure {name}")
    checked(["cmake", "--build", str(folder), "-j", str(os.cpu_count()), "--target", *TARGETS], f"build {name}")
    print(f"{revision or 'working tree'} ({name}): built in {time.monotonic() - began:.0f} s", flush=True)
    return folder / "bin"


def environment():
    """Settings of the caller must not decide what is computed."""
    keep = {k: v for k, v in os.environ.items() if not re.match(r"(OMP_|OMPI_|OPENBLAS_|LOCKSTEP_|SLURM_|PMI)", k)}
    keep.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", LOCKSTEP_NODE_ENV="/dev/null")
    return keep


def train(programs, run, output):
    for ranks, (program, *options) in run.commands(output):
        checked([str(SOURCE / "tests" / "mpi" / "run.sh"), str(ranks), str(programs / program), *options], run.name, RUN_LIMIT, env=environment())


def losses(output):
    """(split, step, loss as it is written) of every training step and evaluation."""
    records = [(json.loads(line), line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [(r["split"], r["step"], re.search(r'"loss": ?([^,}]*)', line).group(1)) for r, line in records if r["split"] in ("train", "eval")]


def difference(run, old, new, tool):
    """"" for a run that computed the same bits, else what differs first."""
    command = [str(tool), "compare", "--json", str(old), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT)
    if done.returncode not in (0, 1):
        raise Failure(f"{run.name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    if done.returncode == 1:
        tensors = found.get("hashes", found.get("checkpoint", {})).get("tensors", [])
        return f"step {found['first_step']}, {len(tensors)} tensors; causes: {'; '.join(found['causes']) or 'none recorded'}"
    if found["hashed_steps"] != run.steps + 1 or found["checkpoints"] < 1:
        raise Failure(f"{run.name}: {found['hashed_steps']} steps and {found['checkpoints']} checkpoints were compared, expected {run.steps + 1} and 1")
    before, after = losses(old), losses(new)
    if before != after:
        first = next((pair for pair in zip(before, after) if pair[0] != pair[1]), (len(before), len(after)))
        return f"the weights are equal, the losses are not: {first[0]} and {first[1]}"
    return ""


def compare(listed, builds, folder):
    differing, failed = 0, 0
    for number, run in enumerate(listed, 1):
        outputs = [folder / f"{number:02}-{side}" for side in ("old", "new")]
        try:
            for programs, output in zip(builds, outputs):
                train(programs, run, output)
            found = difference(run, *outputs, builds[1] / "lockstep")
        except Failure as failure:
            failed += 1
            print(f"{run.name:<60} failed\n{failure}", flush=True)
            continue
        differing += found != ""
        print(f"{run.name:<60} {'equal' if not found else 'differs: ' + found}", flush=True)
        if not found:
            for output in outputs:
                shutil.rmtree(output)
    return differing, failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", help="a git revision")
    parser.add_argument("new", nargs="?", help="another; without it the working tree")
    parser.add_argument("--builds", nargs=2, metavar=("OLD_BIN", "NEW_BIN"), type=Path, help="folders of programs, in place of revisions")
    parser.add_argument("--only", default="", metavar="REGEX", help="the runs whose name it matches")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep there what differs; a temporary folder otherwise")
    parser.add_argument("--list", action="store_true", help="print the names of the runs and end")
    given = parser.parse_args()
    if not given.list and (given.old is None) == (given.builds is None):
        parser.error("expected a revision OLD [NEW], or --builds OLD_BIN NEW_BIN")
    return given


def main():
    given = arguments()
    listed = [run for run in runs() if re.search(given.only, run.name)]
    if given.list:
        print("\n".join(run.name for run in listed))
        return 0
    if not listed:
        print(f"compare_revisions.py: no run matches '{given.only}'; --list prints their names", file=sys.stderr)
        return 2
    try:
        builds = [folder.resolve() for folder in given.builds] if given.builds else [build(given.old), build(given.new)]
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    folder = given.output or Path(tempfile.mkdtemp(prefix="lockstep-compare-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        differing, failed = compare(listed, builds, folder)
    finally:
        if not given.output:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(listed)} runs in {time.monotonic() - began:.0f} s: {len(listed) - differing - failed} equal, {differing} differ, {failed} failed")
    return 2 if failed else 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
