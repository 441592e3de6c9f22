#!/usr/bin/env python3
"""Times PyTorch's scaled_dot_product_attention, and linear with cross_entropy, on the shapes of bench_attention:
forward without gradient, and forward with backward, in milliseconds. Options: --threads N, --seconds S."""
import argparse
import time

import torch
from torch.nn import functional as F

HEADS = {"gpt 8 x 256": (8, 256, 6, 64, True), "vit-tiny 64 x 197": (64, 197, 3, 64, False),
         "long 1 x 2048": (1, 2048, 12, 64, True)}
WORDS = {"bytes": (2048, 384, 256), "bpe": (2048, 384, 8192)}


def median(seconds, run):
    run()
    times, began = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3


def attend(qkv, heads, causal):
    n, t, _, d = qkv.shape
    q, k, v = (part.transpose(1, 2) for part in qkv.view(n, t, 3, heads, d).unbind(2))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)


def report(name, precision, seconds, leaves, function):
    def forward():
        with torch.no_grad():
            return function().square().mean()

    def both():
        for leaf in leaves:
            leaf.grad = None
        function().square().mean().backward()

    print(f"{name:<20} {precision:<5} forward {median(seconds, forward):7.2f} ms, with backward "
          f"{median(seconds, both):7.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {options.threads} threads")
    for precision in ("f32", "bf16"):
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        for name, (n, t, heads, d, causal) in HEADS.items():
            qkv = torch.randn(n, t, 3 * heads, d).to(dtype).requires_grad_()
            report(name, precision, options.seconds, [qkv], lambda: attend(qkv, heads, causal))
        for name, (positions, features, vocabulary) in WORDS.items():
            x = torch.randn(positions, features).to(dtype).requires_grad_()
            table = (0.05 * torch.randn(vocabulary, features)).to(dtype).requires_grad_()
            target = torch.arange(positions) % 251
            report(name, precision, options.seconds, [x, table], lambda: F.cross_entropy(F.linear(x, table), target))


if __name__ == "__main__":
    main()
