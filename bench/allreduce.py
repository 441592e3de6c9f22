#!/usr/bin/env python3
"""Times allreduces by size, ranks and path, beside Open MPI's tuned and han components and, optionally, a peer.

usage: bench/allreduce.py [--ranks 2,3,4,8] [--rounds 9] [--kib 1,256,4096] [--peer 'COMMAND'] [--out bench/results/FILE.jsonl]
       bench/allreduce.py --table bench/results/FILE.jsonl      one table in microseconds

COMMAND is run as `COMMAND allreduce RANKS mpi|gloo` and prints, per size, a line with '1.000 MiB 0.123 ms'; for PyTorch, a
script around torch.distributed, of which none is kept here. Each line of the result has the memory's speed (STREAM's triad) of its own run beside it."""
import argparse
import datetime
import json
import os
import re
import shlex
import subprocess

import compare

HAN = ["--mca", "coll_han_priority", "90"]


def run(command):
    environment = {k: v for k, v in os.environ.items() if not compare.HIDDEN.match(k)}
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def ours(a, ranks, component):
    options = HAN if component == "han" else []
    command = ["mpirun", "--oversubscribe", *options, "-n", str(ranks), a.bench, "--rounds", str(a.rounds), "--json"]
    command += ["--kib", a.kib] if a.kib else []
    for line in run(command).splitlines():
        result = json.loads(line)
        if component == "han" and not result["path"].startswith("mpi"):
            continue  # its own paths do not use MPI's collectives
        yield result | {"mpi": component, "command": compare.shown(command)}


def peers(a, ranks):
    for backend in ("mpi", "gloo") if a.peer else ():
        command = [*shlex.split(a.peer), "allreduce", str(ranks), backend]
        for mib, ms in re.findall(r"([0-9.]+) MiB\s+([0-9.]+) ms", run(command)):
            yield {"row": "allreduce", "kib": round(float(mib) * 1024), "path": f"peer {backend}", "ranks": ranks,
                   "median_us": float(ms) * 1e3, "gb_per_second": 2 * ranks * float(mib) * 2**20 / float(ms) / 1e6,
                   "command": compare.shown(command)}


def table(path):
    with open(path) as f:
        results = [json.loads(line) for line in f]
    columns = list(dict.fromkeys((r["path"], r.get("mpi", "")) for r in results))
    times = {(r["row"], r["ranks"], r.get("kib", 0), (r["path"], r.get("mpi", ""))): r["median_us"] for r in results}
    print("| | ranks | KiB |", " | ".join(" ".join(c).strip() for c in columns), "|\n| --- |" + " --- |" * (2 + len(columns)))
    for row, ranks, kib in sorted({key[:3] for key in times}):
        cells = [f"{times[row, ranks, kib, c]:,.1f}" if (row, ranks, kib, c) in times else "" for c in columns]
        print(f"| {row} | {ranks} | {kib or ''} |", " | ".join(cells), "|")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", default="2,3,4,8")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--kib", help="sizes of a rank's buffer; without it 1 KiB to 256 MiB")
    p.add_argument("--bench", default="build/release/bin/bench_allreduce")
    p.add_argument("--peer")
    p.add_argument("--out")
    p.add_argument("--table", help="print what a file of results holds, and run nothing")
    a = p.parse_args()
    if a.table:
        return table(a.table)
    about = {"commit": compare.commit(), "machine": compare.machine(), "date": datetime.date.today().isoformat()}
    for ranks in map(int, a.ranks.split(",")):
        load = round(os.getloadavg()[0], 2)
        for result in [*ours(a, ranks, "tuned"), *ours(a, ranks, "han"), *peers(a, ranks)]:
            speed = f", {100 * result['of_stream']:.0f}% of STREAM" if "of_stream" in result else ""
            print(f"{ranks} ranks, {result['row']} {result.get('kib', '')} KiB, {result['path']} ({result.get('mpi', 'peer')}): "
                  f"{result['median_us']:.1f} us, {result['gb_per_second']:.1f} GB/s{speed}", flush=True)
            if a.out:
                with open(a.out, "a") as f:
                    f.write(json.dumps(result | about | {"load_before": load}) + "\n")


if __name__ == "__main__":
    main()
