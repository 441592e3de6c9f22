#!/usr/bin/python3
"""How long a job of 2 x 8 ranks takes from its start to the end of its first step, by the launcher that starts it: `lockstep launch`, mpirun
by ssh, and torchrun (PyTorch's DistributedDataParallel over gloo). Two hosts are made of namespaces on this machine (root; tests/cluster/hosts.py),
so all ranks share its cores. The launchers take turns.

  bench/start_times.py BIN [--repeats 5] [--ranks 8] [--without torchrun]

The step is one of a multilayer perceptron (784, 256, 10) at global batch 32. A line of JSON per start goes to stdout, a table to stderr.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster"))
import hosts  # noqa: E402

TRAINING = ["--model", "mlp", "--dataset", "digits", "--limit-train", 64, "--limit-eval", 32, "--global-batch", 32, "--max-steps", 1,
            "--eval-every", 0, "--log-every", 1, "--checkpoint-every", 0, "--threads", 1, "--loaders", 0]
TORCH = """import os, torch
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loss = torch.nn.functional.cross_entropy(model(torch.rand(2, 784)), torch.zeros(2, dtype=torch.long))
loss.backward()
optimizer.step()
loss.item()
if os.environ["RANK"] == "0":
    open(os.environ["FIRST_STEP"], "w").write("done")
torch.distributed.barrier()
"""
SETTINGS = {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1, "OMPI_MCA_orte_tmpdir_base": "/run", "OMPI_MCA_btl": "self,vader,tcp",
            "OMPI_MCA_mpi_yield_when_idle": 1, "OMPI_MCA_btl_base_warn_component_unused": 0, "GLOO_SOCKET_IFNAME": "eth0"}


def same_on_each(words):
    return [(f"node{rank + 1}", [*words, "--nnodes", 2, "--node-rank", rank, "--master-addr", "node1", "--master-port", 29500]) for rank in (0, 1)]


def commands(way, cluster, options, folder, first):
    train = [options.bin / "train_mnist", *TRAINING, "--output", folder / "run"]
    if way == "launch":
        secret = folder / "secret"
        secret.touch(0o600)
        secret.write_text("the secret of this measurement")
        words = [options.bin / "lockstep", "launch", "--nproc-per-node", options.ranks, "--secret-file", secret]
        return [(host, [*command, *train]) for host, command in same_on_each(words)]
    if way == "mpirun":
        return [("node1", cluster.mpirun_words(2 * options.ranks, train, environment={k: v for k, v in SETTINGS.items() if "OMPI" not in k}))]
    script = folder / "first_step.py"
    script.write_text(TORCH)
    words = ["/usr/bin/python3", "-m", "torch.distributed.run", "--nproc_per_node", options.ranks,
             "--redirects", "0:1", "--tee", "0:1"]  # for all at once, PyTorch 1.13 fails under Python 3.11
    return [(host, [*(str(w).replace("--node-rank", "--node_rank").replace("--master-", "--master_") for w in command), script])
            for host, command in same_on_each(words)]


def measure(way, cluster, options):
    folder = Path(tempfile.mkdtemp(prefix="lockstep-start-"))
    first = folder / "first" if way == "torchrun" else folder / "run" / "metrics.jsonl"
    settings = [f"{name}={value}" for name, value in dict(SETTINGS, FIRST_STEP=first).items()]
    words = commands(way, cluster, options, folder, first)
    with open(folder / "log", "w") as log:
        began = time.monotonic()
        processes = [subprocess.Popen(cluster.command(host, ["env", *settings, *command], folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                     for host, command in words]
        seconds = None
        while any(p.poll() is None for p in processes) or seconds is None:
            if seconds is None and first.exists() and first.read_text():
                seconds = time.monotonic() - began
            if seconds is None and all(p.poll() is not None for p in processes) and not (first.exists() and first.read_text()):
                sys.exit(f"{way} did no step:\n{(folder / 'log').read_text()}")
            time.sleep(0.005)
    whole = time.monotonic() - began
    statuses = [p.returncode for p in processes]
    if any(statuses):
        sys.exit(f"{way} ended with {statuses}:\n{(folder / 'log').read_text()}")
    shutil.rmtree(folder)
    return {"way": way, "ranks": 2 * options.ranks, "first_step_s": round(seconds, 3), "whole_s": round(whole, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=lambda text: Path(text).resolve())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=8, help="per host")
    parser.add_argument("--without", action="append", default=[], choices=["launch", "mpirun", "torchrun"])
    options = parser.parse_args()
    ways = [way for way in ("launch", "mpirun", "torchrun") if way not in options.without]
    found = {way: [] for way in ways}
    with hosts.Cluster(2, slots=options.ranks) as cluster:
        for _ in range(options.repeats):
            for way in ways:
                found[way].append(measure(way, cluster, options))
                print(json.dumps(found[way][-1]), flush=True)
    print(f"{'':10} first step, s: median (min to max); whole job: median; load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    for way, starts in found.items():
        seconds = [start["first_step_s"] for start in starts]
        print(f"{way:10} {statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f}); "
              f"{statistics.median(start['whole_s'] for start in starts):.2f}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
