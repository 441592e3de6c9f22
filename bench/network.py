#!/usr/bin/python3
"""Times training steps between hosts, made of namespaces on this machine (tests/cluster/hosts.py; needs root), joined by
cables of a given rate.

usage: bench/network.py [--hosts 2] [--rate 1gbit] [--model resnet18_cifar] [--batch 32] [--rounds 5] [--out FILE.jsonl]

Rounds alternate between who moves messages on: a thread, or the computation between its steps. A step cannot take less than its
computing, measured in the same steps with the communication going on beside it, nor less than its bytes take on the
cable; the last column is the step against the larger of the two. Hosts share this machine's cores: as many as there are
cores, with one rank of one thread each, do not disturb each other."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys

import compare

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "cluster"))
import hosts  # noqa: E402

UNITS = {"mbit": 1e6, "gbit": 1e9}


def bits_per_second(rate):
    return float(rate[:-4]) * UNITS[rate[-4:]]


def run(cluster, a, overlap):
    command = [os.path.abspath(a.bench), a.model, "--batch", str(a.batch), "--steps", str(a.steps), "--warmup", "5",
               "--threads", "1", "--wire", a.wire, "--overlap", overlap, "--json"]
    done = cluster.mpirun(a.hosts, command, limit=300)
    if done.returncode != 0:
        raise SystemExit(f"{compare.shown(command)}: status {done.returncode}\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    return result | {"command": compare.shown(command)}


def summary(a, overlap, rounds):
    of = {key: statistics.median(r[key] for r in rounds) for key in ("median_ms", "compute_ms", "waiting_ms", "network_ms")}
    wire = 8e3 * rounds[0]["network_bytes"] / bits_per_second(a.rate)
    bounds = [r["median_ms"] / max(r["compute_ms"], wire) for r in rounds]
    return {"row": "network", "hosts": a.hosts, "rate": a.rate, "overlap": overlap} | of | {
        "network_bytes": rounds[0]["network_bytes"], "wire_ms": wire, "of_bound": statistics.median(bounds),
        "of_bound_min": min(bounds), "of_bound_max": max(bounds), "rounds": len(rounds), "model": a.model, "batch": a.batch,
        "wire": a.wire, "command": rounds[0]["command"]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hosts", type=int, default=2)
    p.add_argument("--rate", default="1gbit", help="of each cable, both ways: NUMBERmbit or NUMBERgbit")
    p.add_argument("--model", default="resnet18_cifar")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--wire", default="f32", choices=["f32", "bf16", "f16"])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--bench", default="build/release/bin/bench_step")
    p.add_argument("--out")
    a = p.parse_args()
    results = {"thread": [], "steps": []}
    with hosts.Cluster(a.hosts, slots=1, rate=a.rate) as cluster:
        for _ in range(a.rounds):
            for overlap, rounds in results.items():
                rounds.append(run(cluster, a, overlap))
    about = {"commit": compare.commit(), "machine": compare.machine(), "date": datetime.date.today().isoformat()}
    for overlap, rounds in results.items():
        line = summary(a, overlap, rounds)
        print(f"{overlap:6}: step {line['median_ms']:.0f} ms, computing {line['compute_ms']:.0f}, waiting {line['waiting_ms']:.0f}, "
              f"network busy {line['network_ms']:.0f}, its bytes alone {line['wire_ms']:.0f}: {line['of_bound']:.2f} of the bound "
              f"({line['of_bound_min']:.2f} to {line['of_bound_max']:.2f})", flush=True)
        if a.out:
            with open(a.out, "a") as f:
                f.write(json.dumps(line | about) + "\n")


if __name__ == "__main__":
    try:
        main()
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
