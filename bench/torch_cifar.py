#!/usr/bin/env python3
"""Trains ResNet-20 on CIFAR-10 in PyTorch by the recipe of docs/performance.md, as the peer of train_resnet's accuracy.

usage: mpirun -n RANKS torch_cifar.py FOLDER [--epochs 6] [--batch-size 64] [--lr 0.4] [--seed 1] ...

FOLDER has the binary version of CIFAR-10. Random crops of images with a black border of 4 pixels, and flips; torchvision's initial weights; SGD with Nesterov
momentum, weight decay of all parameters; one cycle of the rate by step, without a cycle of the momentum; DDP over gloo, batch norm by
rank. Prints the test accuracy after each epoch."""
import argparse
import os
import pathlib
import sys

import numpy
import torch
from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "parity"))
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def read(folder, names):
    records = numpy.concatenate([numpy.fromfile(folder / name, dtype=numpy.uint8).reshape(-1, 3073) for name in names])
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    images = (images - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(DEVIATION).view(1, 3, 1, 1)
    return images, torch.from_numpy(records[:, 0].astype(numpy.int64))


def augmented(images, generator):
    """Each image with a crop and a flip of its own."""
    n = len(images)
    black = (-torch.tensor(MEAN) / torch.tensor(DEVIATION)).view(1, 3, 1, 1)
    padded = F.pad(images - black, (4, 4, 4, 4)) + black
    top, left = (torch.randint(0, 9, (n, 1, 1), generator=generator) for _ in range(2))
    flip = torch.rand((n, 1, 1), generator=generator) < 0.5
    columns = torch.arange(32).view(1, 1, 32)
    rows, columns = top + torch.arange(32).view(1, 32, 1), left + torch.where(flip, 31 - columns, columns)
    return padded[torch.arange(n).view(n, 1, 1), :, rows, columns].permute(0, 3, 1, 2).contiguous()


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(images.split(500), labels.split(500)))
    model.train()
    return right


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=64, help="samples per rank")
    p.add_argument("--lr", type=float, default=0.4)
    p.add_argument("--rise", type=float, default=0.25)
    p.add_argument("--weight-decay", type=float, default=5e-4)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    import torch.distributed as dist
    import torch_models
    rank, world = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0)), int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    images, labels = read(a.folder, [f"data_batch_{i}.bin" for i in range(1, 6)])
    tests, answers = read(a.folder, ["test_batch.bin"])
    model = torch_models.build("resnet20", 10).to(memory_format=torch.channels_last)
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=a.lr, momentum=0.9, nesterov=True, weight_decay=a.weight_decay)
    step_size = a.batch_size * world
    steps = -(-len(images) // step_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, a.lr, total_steps=steps * a.epochs, pct_start=a.rise, cycle_momentum=False)
    order, draws = torch.Generator().manual_seed(a.seed), torch.Generator().manual_seed(1000 * a.seed + rank)
    for epoch in range(a.epochs):
        samples = torch.randperm(len(images), generator=order)
        for step in range(steps):
            mine = samples[step * step_size:(step + 1) * step_size].tensor_split(world)[rank]
            optimizer.zero_grad()
            x = augmented(images[mine], draws).contiguous(memory_format=torch.channels_last)
            F.cross_entropy(model(x), labels[mine]).backward()
            optimizer.step()
            schedule.step()
        right = torch.tensor(accuracy(model.module, tests.tensor_split(world)[rank], answers.tensor_split(world)[rank]))
        dist.all_reduce(right)
        if rank == 0:
            print(f"epoch {epoch + 1}: accuracy {100 * right.item() / len(tests):.2f}%", flush=True)


if __name__ == "__main__":
    main()
