#!/usr/bin/env python3
"""Times Lockstep and a peer in alternation on the same cores, and prints medians, ratios and whether a row meets its bar.

usage: bench/compare.py --peer 'COMMAND' [--rows toy,resnet20,...] [--rounds 5] [--out bench/results/FILE.jsonl]
       bench/compare.py --table bench/results/FILE.jsonl      a table for a README, of each row's last line

COMMAND is run as `COMMAND ddp RANKS mpi|gloo MODEL BATCH OPTIONS`, ranks of one thread each, and as
`COMMAND bench MODEL BATCH OPTIONS`, one process; OPTIONS are --steps N, --warmup N, --threads N, --cl (channels last), --compile
and --bf16; --tables of dlrm says where tables lie. When its steps are done it prints one line with 'X img/s': bench/torch_step.py
does for PyTorch. Each row tries the peer's back ends and memory formats, then each format of the best back end compiled, where the
peer can compile, and goes on with the fastest. Compiling takes minutes; --no-compile leaves it out.

Rows of a step compare samples per second. `memory` compares the proportional set size of all ranks, added up every 50 ms
while the job runs: the largest sum, divided by the ranks; launchers do not count. `start` compares the seconds from the launch of
the command to the line that is printed after the first step. What is set in the caller's shell for OpenMP and BLAS is not passed on."""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time

HIDDEN = re.compile(r"(OPENBLAS_|OMP_|GOMP_|KMP_|DNNL_|ONEDNN_|LOCKSTEP_|MALLOC_|LD_PRELOAD)")


@dataclasses.dataclass
class Row:
    model: str
    batch: int  # per rank
    steps: int
    bar: float | None  # of the ratio ours / theirs; for `start` of our seconds
    ranks: int = 2
    threads: int = 1
    precision: str = "f32"
    measure: str = "step"  # step, memory, start
    options: tuple = ()  # of ours

    def better_if_less(self):
        return self.measure != "step"


ROWS = {
    "toy": Row("toy", 16, 100, 3.5),
    "resnet20": Row("resnet20", 64, 15, 2.0),
    "resnet18_cifar": Row("resnet18_cifar", 32, 6, 2.2),
    "resnet50": Row("resnet50", 8, 4, 1.7),
    "mlp": Row("mlp", 128, 30, 1.7),
    "unet-2d": Row("unet-2d", 4, 8, 1.3),
    "unet-3d": Row("unet-3d", 2, 6, 1.3),
    "cosmoflow": Row("cosmoflow", 2, 8, 1.3),
    "lstm": Row("lstm", 32, 20, 1.3),
    "fno": Row("fno", 8, 10, 1.3),
    "gpt": Row("gpt", 8, 6, 1.3),
    "vit_ti_16": Row("vit_ti_16", 8, 6, 1.3),
    "dlrm": Row("dlrm", 2048, 20, 3.0),
    "dlrm-memory": Row("dlrm", 2048, 20, 0.333, measure="memory"),
    "gpt-bf16": Row("gpt", 8, 6, 1.0, precision="bf16"),
    "vit_ti_16-bf16": Row("vit_ti_16", 8, 6, 1.0, precision="bf16"),
    "resnet20-exact": Row("resnet20", 64, 15, None, options=("--conv-math", "exact")),
    "resnet18_cifar-exact": Row("resnet18_cifar", 32, 6, None, options=("--conv-math", "exact")),
    "resnet50-exact": Row("resnet50", 8, 4, None, options=("--conv-math", "exact")),
    "resnet20-bf16": Row("resnet20", 128, 15, 1.4, ranks=1, threads=2, precision="bf16"),
    "resnet18_cifar-bf16": Row("resnet18_cifar", 64, 6, 1.2, ranks=1, threads=2, precision="bf16"),
    "resnet50-bf16": Row("resnet50", 8, 5, 1.35, precision="bf16"),
    "memory": Row("resnet50", 8, 4, 0.42, measure="memory"),
    "memory-4": Row("resnet50", 8, 2, None, ranks=4, measure="memory"),
    "memory-4-own": Row("resnet50", 8, 2, None, ranks=4, measure="memory", options=("--no-share-weights",)),
    "start": Row("toy", 16, 1, 0.3, measure="start"),
}


class CommandFailed(Exception):
    """A command ended with another status than 0."""


class Job:
    """A command that runs to its end: its output, when a line of it matched, and the memory of its workers."""

    def __init__(self, command, workers, marker=None, sample=False):
        environment = {k: v for k, v in os.environ.items() if not HIDDEN.match(k)}
        if os.geteuid() == 0:
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        began = time.monotonic()
        self.output, self.marked, self.peak_bytes, self.workers = "", None, 0, workers
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        over = threading.Event()
        sampler = threading.Thread(target=self.sample, args=(process.pid, over))
        if sample:
            sampler.start()
        for line in process.stdout:
            if marker and self.marked is None and re.search(marker, line):
                self.marked = time.monotonic() - began
            self.output += line
        status = process.wait()
        over.set()
        if sample:
            sampler.join()
        if status != 0:
            raise CommandFailed(f"{shlex.join(command)}: exit {status}\n{self.output}")

    def sample(self, pid, over):
        while not over.wait(0.05):
            self.peak_bytes = max(self.peak_bytes, sum(proportional_bytes(p) for p in tree(pid) if name_of(p).startswith(self.workers)))


def last_line(text):
    """Its last error, or its last line, in which words stand."""
    lines = [line for line in text.splitlines() if re.search(r"\w", line)] or ["no output"]
    return next((line for line in reversed(lines) if re.search(r"\w+Error\b", line)), lines[-1])


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:  # it has ended meanwhile
        return ""


def name_of(pid):
    return read(f"/proc/{pid}/comm")


def tree(pid):
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in read(task).split():
            found += tree(int(child))
    return found


def proportional_bytes(pid):
    found = re.search(r"^Pss:\s+(\d+) kB", read(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


class Lockstep:
    name = "lockstep"

    def __init__(self, bench):
        self.bench = bench

    def command(self, row):
        bind = ["--bind-to", "none"] if row.threads > 1 else []
        command = ["mpirun", "--oversubscribe", *bind, "-n", str(row.ranks), self.bench, row.model, "--batch", str(row.batch),
                   "--steps", str(row.steps), "--threads", str(row.threads), "--precision", row.precision, *row.options, "--json"]
        return command + (["--warmup", "0", "--first-step"] if row.measure == "start" else [])

    def run(self, row):
        job = Job(self.command(row), "bench_step", marker="first step done", sample=row.measure == "memory")
        speed = json.loads(job.output.strip().splitlines()[-1])["samples_per_second"]
        return reading(job, row, speed)


class Peer:
    name = "peer"

    def __init__(self, command, variant, compiles):
        self.words, self.variant, self.compiles = shlex.split(command), variant, compiles

    @staticmethod
    def variants(row):
        if row.model == "dlrm":  # MPI cannot reduce sparse gradients
            return [("gloo", "--tables", "separate"), ("gloo", "--tables", "joined"), ("gloo", "--tables", "split"), ("mpi", "--tables", "split")]
        formats = [()] if row.model in ("mlp", "lstm", "fno", "gpt") else [(), ("--cl",)]
        return [(b, *f) for b in (("mpi", "gloo") if row.ranks > 1 else ("",)) for f in formats]

    def command(self, row):
        backend, *flags = self.variant
        how = ["ddp", str(row.ranks), backend] if backend else ["bench"]
        threads = [] if backend else ["--threads", str(row.threads)]
        precision = ["--bf16"] if row.precision == "bf16" else []
        warmup = ["--warmup", "0"] if row.measure == "start" else []
        return [*self.words, *how, row.model, str(row.batch), *flags, *precision, *threads, "--steps", str(row.steps), *warmup]

    def choose(self, row):
        """The variant that one would train with; for `start` the one that starts soonest. The better of two tries counts."""
        trial = row if row.measure == "start" else dataclasses.replace(row, measure="step")
        worth = {}
        best = (lambda v: -min(worth[v])) if row.measure == "start" else (lambda v: max(worth[v]))

        def fastest_of(variants):
            worth.update({variant: [] for variant in variants})
            for _ in range(2):
                for self.variant in variants:
                    worth[self.variant].append(self.run(trial))
            self.variant = max(worth, key=best)

        fastest_of(self.variants(row))
        if self.compiles and row.measure == "step" and row.model != "dlrm":
            backend, eager = self.variant[0], self.variant
            try:
                fastest_of([(*v, "--compile") for v in self.variants(row) if v[0] == backend])
            except CommandFailed as failure:  # it has ops that the peer cannot compile
                print(f"compare.py: {row.model} is timed eagerly only, as its compiled form fails: {last_line(str(failure))}", file=sys.stderr, flush=True)
                self.variant = eager

    def can_compile(self):
        """Whether a compiled step of a small model runs; says so where it does not."""
        command = [*self.words, "bench", "mlp", "2", "--compile", "--threads", "1", "--steps", "1", "--warmup", "1"]
        tried = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if tried.returncode == 0:
            return True
        print(f"compare.py: the peer cannot compile ({last_line(tried.stdout)}); it is timed eagerly only", file=sys.stderr, flush=True)
        return False

    def run(self, row):
        job = Job(self.command(row), "python", marker="img/s", sample=row.measure == "memory")
        return reading(job, row, float(re.search(r"([0-9.]+) img/s", job.output).group(1)))


def reading(job, row, speed):
    return {"step": speed, "start": job.marked, "memory": job.peak_bytes / row.ranks / 2**20}[row.measure]


UNITS = {"step": "samples/s", "memory": "MiB a rank", "start": "s"}


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def shown(command):
    """The command as others would type it: no folders of this machine."""
    return shlex.join(os.path.basename(word) if "/" in word else word for word in command)


def compare(name, row, lockstep, peer, rounds):
    if not peer.variant:
        peer.choose(row)
    ours, theirs, load = [], [], os.getloadavg()[0]
    for _ in range(rounds):
        ours.append(lockstep.run(row))
        theirs.append(peer.run(row))
    result = {"row": name, "measure": row.measure, "unit": UNITS[row.measure], "model": row.model, "batch": row.batch,
              "ranks": row.ranks, "threads": row.threads, "precision": row.precision, "options": " ".join(row.options),
              "lockstep": spread(ours), "peer": {"variant": " ".join(peer.variant).strip(), **spread(theirs)},
              "ratio": spread([x / y for x, y in zip(ours, theirs)]), "rounds": rounds}
    if row.bar is not None:
        reached = result["lockstep" if row.measure == "start" else "ratio"]["median"]
        result |= {"bar": row.bar, "pass": reached <= row.bar if row.better_if_less() else reached >= row.bar}
    commands = {"lockstep": shown(lockstep.command(row)), "peer": shown(peer.command(row))}
    return result | {"commands": commands, "load_before": round(load, 2)}


def verdict(result):
    if "bar" not in result:
        return ""
    of = " s" if result["measure"] == "start" else ""
    return f"bar {result['bar']:g}{of}: {'met' if result['pass'] else 'missed'}"


def figures(side):
    digits = 0 if side["median"] >= 100 else 1 if side["median"] >= 10 else 2
    return f"{side['median']:.{digits}f} ({side['min']:.{digits}f} to {side['max']:.{digits}f})"


def machine():
    model = re.search(r"^model name\s*: (.*)$", read("/proc/cpuinfo"), re.MULTILINE)
    return f"{len(os.sched_getaffinity(0))} cores of {model.group(1) if model else os.uname().machine}"


def commit():
    said = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent)
    return said.stdout.strip() or "unknown"


def print_table(path):
    last = {}
    for line in pathlib.Path(path).read_text().splitlines():
        result = json.loads(line)
        last[result["row"]] = result
    print("| row | what | Lockstep | peer | ratio | bar |\n| --- | --- | --- | --- | --- | --- |")
    for name, r in last.items():
        what = f"{r['model']}, batch {r['batch']}, {r['precision']}, {r['ranks']} × {r['threads']}, {r['unit']}"
        bar = f"{r['bar']:g}{' s' if r['measure'] == 'start' else ''}" if "bar" in r else ""
        print(f"| {name} | {what} | {figures(r['lockstep'])} | {figures(r['peer'])} | {figures(r['ratio'])} | {bar} |")


def variant_of(text, row):
    """The variant that was asked for, ("mpi", "--cl"); () to try them."""
    if not text:
        return ()
    words = text.split()
    return tuple(words if row.ranks > 1 else ["", *(w for w in words if w.startswith("--"))])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peer")
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--bench", default="build/release/bin/bench_step")
    p.add_argument("--variant", help="of the peer, such as 'mpi --cl', where an earlier run has told which is the fastest")
    p.add_argument("--no-compile", action="store_true", help="do not try the peer's compiled form")
    p.add_argument("--out")
    p.add_argument("--table")
    a = p.parse_args()
    if a.table:
        return print_table(a.table)
    if not a.peer:
        p.error("--peer is missing: the command that times the peer")
    if unknown := [name for name in a.rows.split(",") if name not in ROWS]:
        p.error(f"--rows: there is no {', '.join(unknown)}; there are {', '.join(ROWS)}")
    compiles = not a.no_compile and not a.variant and Peer(a.peer, (), False).can_compile()
    about = {"commit": commit(), "machine": machine(), "date": datetime.date.today().isoformat()}
    for name in a.rows.split(","):
        result = compare(name, ROWS[name], Lockstep(a.bench), Peer(a.peer, variant_of(a.variant, ROWS[name]), compiles), a.rounds) | about
        print(f"{name}: lockstep {figures(result['lockstep'])}, peer ({result['peer']['variant']}) {figures(result['peer'])} "
              f"{result['unit']}, ratio {figures(result['ratio'])}; {verdict(result)}", flush=True)
        if a.out:
            with open(a.out, "a") as f:
                f.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    try:
        main()
    except CommandFailed as failed:
        sys.exit(str(failed))
