#!/usr/bin/env python3
"""Times Lockstep's training step and a peer's in alternation on the same cores, and prints medians and ratios.

usage: bench/compare.py --peer 'COMMAND' [--rows toy,resnet20,...] [--rounds 5] [--out bench/results/FILE.jsonl]

COMMAND is run as `COMMAND ddp RANKS BACKEND MODEL BATCH [--cl] --steps N` and prints one line with 'X img/s'; for PyTorch, a
script around torch.distributed. The peer's back ends and memory formats are tried once each and the fastest is timed."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

# name: model here, the peer's name for it, batch per rank, ranks, timed steps
ROWS = {
    "toy": ("toy", "toy", 16, 2, 100),
    "resnet20": ("resnet20", "resnet20", 64, 2, 15),
    "resnet18_cifar": ("resnet18_cifar", "resnet18_cifar", 32, 2, 6),
    "resnet50": ("resnet50", "resnet50", 8, 2, 4),
    "mlp": ("mlp", "mlp", 128, 2, 30),
}


def run(command):
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1") if os.geteuid() == 0 else None
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=900)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def lockstep(bench, row):
    model, _, batch, ranks, steps = row
    out = run(["mpirun", "--oversubscribe", "-n", str(ranks), bench, model, "--batch", str(batch), "--steps", str(steps), "--json"])
    return json.loads(out.strip().splitlines()[-1])["samples_per_second"]


def peer(command, variant, row):
    _, model, batch, ranks, steps = row
    backend, flags = variant
    out = run(command.split() + ["ddp", str(ranks), backend, model, str(batch), "--steps", str(steps)] + flags)
    return float(re.search(r"([0-9.]+) img/s", out).group(1))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peer", required=True)
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--bench", default="build/release/bin/bench_step")
    p.add_argument("--out")
    a = p.parse_args()
    commit = run(["git", "describe", "--always", "--dirty"]).strip()
    for name in a.rows.split(","):
        row = ROWS[name]
        variants = [(b, f) for b in ("mpi", "gloo") for f in ([], ["--cl"]) if not (f and name == "mlp")]
        tried = {i: peer(a.peer, v, row) for i, v in enumerate(variants)}
        best = variants[max(tried, key=tried.get)]
        ours, theirs = [], []
        for _ in range(a.rounds):
            ours.append(lockstep(a.bench, row))
            theirs.append(peer(a.peer, best, row))
        ratios = [x / y for x, y in zip(ours, theirs)]
        result = {"row": name, "batch": row[2], "ranks": row[3], "threads": 1, "precision": "f32", "commit": commit,
                  "lockstep": {"median": statistics.median(ours), "min": min(ours), "max": max(ours)},
                  "peer": {"variant": " ".join([best[0]] + best[1]), "median": statistics.median(theirs), "min": min(theirs), "max": max(theirs)},
                  "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}, "rounds": a.rounds}
        print(f"{name}: lockstep {result['lockstep']['median']:.1f}, peer ({result['peer']['variant']}) "
              f"{result['peer']['median']:.1f} samples/s, ratio {result['ratio']['median']:.2f} "
              f"({result['ratio']['min']:.2f} to {result['ratio']['max']:.2f})", flush=True)
        if a.out:
            with open(a.out, "a") as f:
                f.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
