#!/usr/bin/env python3
"""Makes the table of convolution layers from several runs of bench_kernels: how many times as fast as oneDNN's best kernel ours is.

bench/kernel_table.py FILE... [--keep FILE] [--all]

Each FILE holds one run: bench_kernels MODEL... --precision f32 --ops conv2d --threads N --json. Per layer and run, the times of oneDNN's best
kernel in the three directions are added, and divided by those of Lockstep's best kernel (ours) and of the kernels that a plan takes (taken); the
table has the median of the runs, the least and the most in parentheses, and for each direction the median of ours. Layers with a 3x3 kernel and
stride 1, or with --all all of them. --keep adds median times in microseconds to a file, a line for each layer and direction, as bench/results has them."""

import argparse
import collections
import json
import re
import statistics

DIRECTIONS = {"conv2d": "forward", "conv2d_backward_data": "data", "conv2d_backward_weights": "weights"}


def layer_of(line):
    """With the input's and the weight's shape, which each direction has in other places."""
    shapes = [tuple(map(int, text.split(", "))) for text in re.findall(r"f32\(([\d, ]+)\)", line["types"])]
    image, weight = {"forward": (0, 1), "data": (-1, 1), "weights": (0, -1)}[DIRECTIONS[line["op"]]]
    return line["model"], line["batch"], shapes[image], shapes[weight], line["attributes"]


def vendor(line):
    return "ours" if line["implementation"].startswith("native:") else "oneDNN" if line["implementation"].startswith("jit") else "other"


def read(files):
    """[layer][direction][kind][run]: the least median of a run's kernels of that kind, or of the kernel that a plan takes; and the machine."""
    times, machine = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(dict))), {}
    for run, file in enumerate(files):
        with open(file, encoding="utf-8") as text:
            lines = [json.loads(line) for line in text]
        for line in lines:
            if line.get("op") not in DIRECTIONS:
                continue
            if vendor(line) == "ours":
                machine = {"cpu": line["cpu"], "threads": line["threads"], "level": line["implementation"].split(":")[1]}
            kinds = times[layer_of(line)][DIRECTIONS[line["op"]]]
            for kind in [vendor(line)] + (["taken"] if line["chosen"] else []):
                kinds[kind][run] = min(line["median_us"], kinds[kind].get(run, float("inf")))
    return times, machine


def ratios(directions, kind):
    """Of each run that has the times of both in all directions."""
    runs = set.intersection(*(set(kinds["oneDNN"]) & set(kinds[kind]) for kinds in directions))
    return [sum(kinds["oneDNN"][run] for kinds in directions) / sum(kinds[kind][run] for kinds in directions) for run in sorted(runs)]


def shown(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--all", action="store_true", help="layers of every kernel and stride")
    parser.add_argument("--keep", metavar="FILE", help="add the times to this file")
    arguments = parser.parse_args()
    times, machine = read(arguments.files)
    print("| layer | ours | taken | forward | data | weights |\n| --- | --- | --- | --- | --- | --- |")
    for (model, batch, image, weight, attributes), directions in times.items():
        if not arguments.all and (weight[2:] != (3, 3) or "stride 1x1" not in attributes or weight[1] == 3):
            continue
        every = list(directions.values())
        single = [f"{statistics.median(r):.2f}" if d in directions and (r := ratios([directions[d]], "ours")) else "-" for d in DIRECTIONS.values()]
        name = f"{model}, {image[1]} -> {weight[0]}, {image[2]} x {image[3]}, batch {batch}" + (f", {weight[2]} x {weight[3]}, {attributes}" if arguments.all else "")
        print(f"| {name} | {shown(ratios(every, 'ours'))} | {shown(ratios(every, 'taken'))} | {' | '.join(single)} |")
    if arguments.keep:
        with open(arguments.keep, "a", encoding="utf-8") as file:
            for (model, batch, image, weight, attributes), directions in times.items():
                for direction, kinds in directions.items():
                    medians = {kind: round(statistics.median(runs.values()), 1) for kind, runs in kinds.items() if kind != "other"}
                    file.write(json.dumps(machine | {"model": model, "batch": batch, "image": image, "weight": weight, "attributes": attributes,
                                           "direction": direction} | medians) + "\n")


if __name__ == "__main__":
    main()
