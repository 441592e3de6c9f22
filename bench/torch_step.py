#!/usr/bin/env python3
"""Times training steps in PyTorch, as the peer of bench/compare.py.

usage: torch_step.py bench MODEL BATCH [OPTIONS]
       torch_step.py ddp RANKS gloo|mpi MODEL BATCH [OPTIONS]     ranks of one thread each, started by mpirun

One random batch, SGD with momentum and weight decay, as bench_step. MODEL is a field model of bench/torch_fields.py
(mean squared error), gpt (bench/torch_sequences.py), dlrm (bench/torch_clicks.py, plain SGD, binary cross entropy), or one of
tests/parity/torch_models.py (cross entropy). The last line has the samples per second of all ranks as 'X img/s'."""
import argparse
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
IMAGES = {"toy": (3, 32, 32), "mlp": (256,), "mnist_mlp": (784,)}


def subject(name, batch):
    """Model, a batch of inputs and targets, and whether the targets are classes."""
    import torch
    import torch_fields
    import torch_sequences
    if name in torch_sequences.ROWS:
        config = torch_sequences.ROWS[name]
        tokens = torch.randint(0, config["vocabulary"], (2, batch, config["context"]))
        return torch_sequences.Gpt(**config), tokens[0], tokens[1], True
    if name in torch_fields.ROWS:
        model, config = torch_fields.ROWS[name]
        return torch_fields.MODELS[model](**config), torch.randn(batch, *config["inputs"]), torch.randn(batch, *config["outputs"]), False
    sys.path.append(str(HERE.parent / "tests" / "parity"))
    import torch_models
    small = name in IMAGES or name.endswith("_cifar") or name in ("resnet20", "resnet32", "resnet44", "resnet56", "resnet110")
    classes = 10 if small else 1000
    image = IMAGES.get(name, (3, 32, 32) if small else (3, 224, 224))
    return torch_models.build(name, classes, image), torch.randn(batch, *image), torch.randint(0, classes, (batch,)), True


def time_steps(a):
    import torch
    from torch.nn import functional as F
    if a.threads:
        torch.set_num_threads(a.threads)
    rank, world = 0, 1
    if a.backend:
        import torch.distributed as dist
        if a.backend == "gloo":
            os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
            os.environ.setdefault("MASTER_PORT", "29511")
            dist.init_process_group("gloo", rank=int(os.environ.get("OMPI_COMM_WORLD_RANK", 0)),
                                    world_size=int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1)))
        else:
            dist.init_process_group(a.backend)
        rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    if a.model == "dlrm":
        import torch_clicks
        model, x, y = torch_clicks.subject(a.batch, a.tables, world, rank)
        optimizer, loss_of = torch.optim.SGD(model.parameters(), lr=0.1), F.binary_cross_entropy_with_logits
    else:
        model, x, y, classes = subject(a.model, a.batch)
        memory = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim(), torch.contiguous_format) if a.cl else torch.contiguous_format
        model, x = model.to(memory_format=memory), (x.to(memory_format=memory),)
        if a.backend:
            model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 if classes else 1e-3, momentum=0.9, weight_decay=1e-4)
        loss_of = (lambda logits, y: F.cross_entropy(logits.flatten(0, -2), y.flatten())) if classes else F.mse_loss
    if a.compile:
        model = torch.compile(model)
    model.train()
    parameters, seconds = sum(p.numel() for p in model.parameters()), []
    for step in range(a.warmup + a.steps):
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.bf16):
            loss = loss_of(model(*x), y)
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= a.warmup:
            seconds.append(time.perf_counter() - began)
    if rank == 0:
        median = statistics.median(seconds)
        print(f"torch {torch.__version__} {a.model} {parameters} parameters, batch {a.batch} x {world} ranks x {torch.get_num_threads()} threads"
              f"{' bf16' if a.bf16 else ''}{' channels last' if a.cl else ''}{' compiled' if a.compile else ''}{f' tables {a.tables}' if a.model == 'dlrm' else ''}{' ' + a.backend if a.backend else ''}: "
              f"{a.batch * world / median:.1f} img/s, step {median * 1e3:.2f} ms (min {min(seconds) * 1e3:.2f})", flush=True)
    if a.backend:
        torch.distributed.destroy_process_group()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("batch", type=int)
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--cl", action="store_true", help="channels last")
    p.add_argument("--compile", action="store_true", help="torch.compile: needs a C++ compiler and Python's headers")
    p.add_argument("--tables", choices=("separate", "joined", "split"), default="separate", help="dlrm: bench/torch_clicks.py")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--backend", choices=("gloo", "mpi"), help=argparse.SUPPRESS)  # in a rank that `ddp` started
    words = sys.argv[1:]
    if words[:1] == ["ddp"] and len(words) >= 5:
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        os.environ.update(OMP_NUM_THREADS="1", USE_LIBUV="0")
        os.execvp("mpirun", ["mpirun", *root, "--oversubscribe", "-n", words[1], sys.executable, __file__, *words[3:], "--threads", "1",
                             "--backend", words[2]])
    time_steps(p.parse_args(words[1:] if words[:1] == ["bench"] else words))


if __name__ == "__main__":
    main()
