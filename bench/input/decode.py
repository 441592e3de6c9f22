#!/usr/bin/env python3
"""Decode rates of Lockstep beside Pillow and torchvision: decode.py BENCH_INPUT [--images N] [--rounds N] [--seconds S].

Makes JPEGs of 500 x 375 pixels (the usual size in ImageNet) in a temporary folder, then measures in turn, one thread each:
RandomResizedCrop(224) and Resize(256) + CenterCrop(224), with flip and normalisation. Prints the median, minimum and maximum of
images per second.
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
from PIL import Image
import torch
from torchvision import datasets, transforms as T


def make_folder(root, count):
    random = np.random.RandomState(1)
    for i in range(count):
        # Structure at several scales, so that the files are as long as photographs' (about 50 kB).
        pixels = np.zeros((375, 500, 3))
        for scale, strength in ((6, 60), (25, 50), (75, 25), (188, 18)):
            coarse = random.normal(0, strength, (scale, scale * 4 // 3, 3))
            layers = [Image.fromarray(coarse[..., c].astype(np.float32)).resize((500, 375), Image.BICUBIC) for c in range(3)]
            pixels += np.stack([np.asarray(layer) for layer in layers], -1)
        folder = root / f"class{i % 4}"
        folder.mkdir(exist_ok=True)
        Image.fromarray(np.clip(pixels + 128, 0, 255).astype(np.uint8)).save(folder / f"{i:04}.jpg", quality=90)


def torchvision_rate(root, crop, seconds):
    start = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()] if crop == "random" else [T.Resize(256), T.CenterCrop(224)]
    images = datasets.ImageFolder(root, T.Compose(start + [T.ToTensor(), T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    order = torch.randperm(len(images)).tolist()
    images[0]
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        images[order[count % len(order)]]
        count += 1
    return count / (time.perf_counter() - begin)


def lockstep_rate(program, root, crop, seconds, *more):
    command = [program, root, "--crop", crop, "--seconds", str(seconds), "--threads", "0", *more]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_input of the build")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        make_folder(root, arguments.images)
        sizes = [path.stat().st_size for path in root.glob("*/*.jpg")]
        print(f"{len(sizes)} JPEGs of 500 x 375, {statistics.mean(sizes) / 1000:.0f} kB on average, one thread")
        for crop in ("random", "centre"):
            rows = {"Lockstep": lambda: lockstep_rate(arguments.program, scratch, crop, arguments.seconds),
                    "Lockstep, --whole": lambda: lockstep_rate(arguments.program, scratch, crop, arguments.seconds, "--whole"),
                    "torchvision, Pillow": lambda: torchvision_rate(scratch, crop, arguments.seconds)}
            rates = {name: [] for name in rows}
            for _ in range(arguments.rounds):
                for name, rate in rows.items():
                    rates[name].append(rate())
            for name, values in rates.items():
                print(f"{crop:7} {name:20} {statistics.median(values):7.0f} images/s ({min(values):.0f} to {max(values):.0f})")


if __name__ == "__main__":
    main()
