#!/usr/bin/env python3
"""Makes the table of convolution layers from several runs of bench_kernels: how many times as fast as oneDNN's best kernel ours is.

bench/kernel_table.py FILE... [--keep FILE] [--all]
bench/kernel_table.py KEPT [--threads N] [--level LEVEL] [--all]

Each FILE holds one run: bench_kernels MODEL... --precision f32 --ops conv2d --threads N --json. Per layer and run, the times of oneDNN's best
kernel in the three directions are added, and divided by those of Lockstep's best kernel (ours) and of the kernels that a plan takes (taken); the
table has the median of the runs, the least and the most in parentheses, and for each direction the median of ours. Layers with a 3x3 kernel and
stride 1 of more than three channels, or with --all all of them. --keep adds the times to a file, a line for each layer and direction with the
microseconds of each run, as bench/results has them. Such a file is read in place of runs; --threads and --level choose among its lines."""

import argparse
import collections
import json
import re
import statistics
import sys

DIRECTIONS = {"conv2d": "forward", "conv2d_backward_data": "data", "conv2d_backward_weights": "weights"}
LAYER = ("model", "batch", "image", "weight", "attributes")
MACHINE = ("cpu", "threads", "level")


def layer_of(line):
    """With the input's and the weight's shape, which each direction has in other places."""
    shapes = [tuple(map(int, text.split(", "))) for text in re.findall(r"f32\(([\d, ]+)\)", line["types"])]
    image, weight = {"forward": (0, 1), "data": (-1, 1), "weights": (0, -1)}[DIRECTIONS[line["op"]]]
    return line["model"], line["batch"], shapes[image], shapes[weight], line["attributes"]


def vendor(line):
    """ours, oneDNN or other: a set of kernels names its implementations, and generic kernels stand for themselves."""
    name = line["implementation"]
    return "ours" if name.startswith("native:") else "other" if name.startswith("generic") else "oneDNN"


class Times:
    """[layer][direction][kind]: for each run the least median of that kind's kernels, or of the kernel that a plan takes."""

    def __init__(self):
        self.layers = collections.defaultdict(lambda: collections.defaultdict(dict))
        self.machines = set()

    def add_run(self, lines):
        run = collections.defaultdict(dict)
        for line in lines:
            if line.get("op") not in DIRECTIONS:
                continue
            if vendor(line) == "ours":
                self.machines.add((line["cpu"], line["threads"], line["implementation"].split(":")[1]))
            for kind in [vendor(line)] + (["taken"] if line["chosen"] else []):
                times = run[layer_of(line), DIRECTIONS[line["op"]]]
                times[kind] = min(line["median_us"], times.get(kind, float("inf")))
        for (layer, direction), times in run.items():
            for kind, time in times.items():
                self.layers[layer][direction].setdefault(kind, []).append(time)

    def add_kept(self, line):
        self.machines.add(tuple(line[name] for name in MACHINE))
        layer = tuple(tuple(line[name]) if isinstance(line[name], list) else line[name] for name in LAYER)
        self.layers[layer][line["direction"]] = line["microseconds"]

    def machine(self):
        if len(self.machines) != 1:
            sys.exit(f"kernel_table.py: the files are of {len(self.machines)} machines, expected one: "
                     + "; ".join(f"{cpu}, {threads} threads, {level}" for cpu, threads, level in sorted(self.machines)))
        return dict(zip(MACHINE, next(iter(self.machines))))


def read(files, threads, level):
    times = Times()
    for name in files:
        with open(name, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        if lines and "microseconds" in lines[0]:
            for line in lines:
                if (threads or line["threads"]) == line["threads"] and (level or line["level"]) == line["level"]:
                    times.add_kept(line)
        else:
            times.add_run(lines)
    return times


def ratios(directions, kind):
    """Of each run, where all directions have the times of both."""
    if not all("oneDNN" in times and kind in times for times in directions):
        return []
    return [sum(theirs) / sum(ours) for theirs, ours in zip(zip(*(t["oneDNN"] for t in directions)), zip(*(t[kind] for t in directions)))]


def shown(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--all", action="store_true", help="layers of every kernel, stride and number of channels")
    parser.add_argument("--keep", metavar="FILE", help="add the times to this file")
    parser.add_argument("--threads", type=int, help="of a file that was kept, lines of so many threads")
    parser.add_argument("--level", help="and of this instruction set")
    arguments = parser.parse_args()
    times = read(arguments.files, arguments.threads, arguments.level)
    machine = times.machine()
    print("| layer | ours | taken | forward | data | weights |\n| --- | --- | --- | --- | --- | --- |")
    for (model, batch, image, weight, attributes), directions in times.layers.items():
        if not arguments.all and (weight[2:] != (3, 3) or "stride 1x1" not in attributes or weight[1] == 3):
            continue
        every = list(directions.values())
        single = [ratios([directions[d]], "ours") if d in directions else [] for d in DIRECTIONS.values()]
        name = f"{model}, {image[1]} -> {weight[0]}, {image[2]} x {image[3]}, batch {batch}" + (f", {weight[2]} x {weight[3]}, {attributes}" if arguments.all else "")
        print(f"| {name} | {shown(ratios(every, 'ours'))} | {shown(ratios(every, 'taken'))} | "
              + " | ".join(f"{statistics.median(r):.2f}" if r else "-" for r in single) + " |")
    if arguments.keep:
        with open(arguments.keep, "a", encoding="utf-8") as file:
            for layer, directions in times.layers.items():
                for direction, kinds in directions.items():
                    kept = {kind: [round(t, 1) for t in runs] for kind, runs in kinds.items() if kind != "other"}
                    file.write(json.dumps(machine | dict(zip(LAYER, layer)) | {"direction": direction, "microseconds": kept}) + "\n")


if __name__ == "__main__":
    main()
