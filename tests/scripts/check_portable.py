#!/usr/bin/env python3
"""Refuses what makes bits depend on the C library, the compiler or the number of threads (docs/bits.md, --bits portable).

check_portable.py SOURCE: looks at the sources whose results reach weights, samples or schedules, and at the compiler flags.
"""

import pathlib
import re
import sys
import tempfile

# Correctly rounded or exact in every library: sqrt, fma, fmod, ldexp, floor, nearbyint and their like.
FUNCTION = re.compile(r"(?:std::|__builtin_|(?<![\w.:>])::)(exp2?|expm1|log(?:2|10|1p)?|sinh?|cosh?|tanh?|a(?:sin|cos|tan)h?|atan2|erfc?|pow|cbrt|[lt]gamma|hypot|assoc_\w+)[fl]?\(")
LIBRARY = re.compile(r"std::(shuffle|sample|random_device|mt19937\w*|minstd\w*|default_random_engine|\w+_distribution|transform_reduce)\b")
REDUCTION = re.compile(r"#pragma omp .*\breduction\(")
DOUBLE = re.compile(r"\blong double\b")
DRAW = re.compile(r"\b\w*(?:random|rng)\w*\.(?:uniform|normal|below|next)\(")
FLAGS = re.compile(r"-ffast-math|-Ofast|-funsafe-math\S*|-fassociative-math|-freciprocal-math|-mfpmath=387|-ffp-contract=(?!off)\w+|-fopenmp-simd-reduction")

FOLDERS = ["framework/lockstep", "data", "models"]
# What reaches no weight, sample or schedule, with the reason.
ALLOWED = {
    ("framework/lockstep/ops/fourier.cpp", "log2"): "counts operations for --profile",
    ("framework/lockstep/train/report/progress.cpp", "exp"): "the speed that is shown",
    ("framework/lockstep/kernels/peaks.cpp", "reduction"): "counts operations of a measurement",
}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def arguments(text, begin):
    """The top-level arguments of the call whose parenthesis opens at `begin`."""
    depth, parts, start = 0, [], begin + 1
    for at in range(begin, min(len(text), begin + 2000)):
        c = text[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return parts + [text[start:at]]
        elif c in ",;" and depth == 1:
            if c == ";":
                return []
            parts.append(text[start:at])
            start = at + 1
    return []


def findings(name, text):
    text = without_comments(text)
    line = lambda at: text.count("\n", 0, at) + 1
    for pattern, why in ((FUNCTION, "is the C library's: use lockstep/core/math.h"), (LIBRARY, "differs between standard libraries: use lockstep/core/random.h, or a loop"),
                         (REDUCTION, "adds in an order that follows threads or lanes: add parts that follow the shape"),
                         (DOUBLE, "has other sizes on other processors: use double")):
        for found in pattern.finditer(text):
            word = found.group(1) if found.groups() else "reduction" if pattern is REDUCTION else found.group(0)
            if (name, word) not in ALLOWED:
                yield f"{name}:{line(found.start())}: {found.group(0).rstrip('(')} {why}"
    for call in re.finditer(r"\b[\w>]+(?P<open>\()", text):
        if call.group(0).split("(")[0] in ("if", "for", "while", "switch", "return"):
            continue
        drawing = [a for a in arguments(text, call.start("open")) if DRAW.search(a) and not a.lstrip().startswith("[")]
        if len(drawing) > 1:
            yield f"{name}:{line(call.start())}: two arguments draw random numbers, in an order that the compiler chooses: draw them before the call"


def flags(name, text):
    text = re.sub(r"#[^\n]*", "", text) if name.endswith((".txt", ".cmake")) else text
    for found in FLAGS.finditer(text):
        yield f"{name}: {found.group(0)} changes how sums and products round"


def check(source):
    found = []
    for folder in FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                found += findings(str(path.relative_to(source)), path.read_text())
    lists = [p for pattern in ("CMakeLists.txt", "CMakePresets.json", "cmake/*.cmake", "framework/CMakeLists.txt", "*/CMakeLists.txt", "tests/*/CMakeLists.txt")
             for p in source.glob(pattern)]
    for path in sorted(set(lists)):
        found += flags(str(path.relative_to(source)), path.read_text())
    if "-ffp-contract=off" not in (source / "CMakeLists.txt").read_text():
        found.append("CMakeLists.txt: no -ffp-contract=off: compilers would fuse products and sums where they like")
    return found


def self_test():
    """Each rule finds what it is for, and lets pass what is like it."""
    bad = {"x = std::exp(y);": "std::exp", "x = std::powf(y, 2);": "std::pow", "x = __builtin_sin(y);": "__builtin_sin", "std::shuffle(a, b, c);": "std::shuffle",
           "std::normal_distribution<float> d;": "std::normal_distribution", "#pragma omp parallel for reduction(+ : sum)\n": "reduction", "long double x;": "long double",
           "line(random.uniform(0, 1),\n     random.uniform(0, 1));": "two arguments"}
    good = ["x = math::exp(y); // std::exp(y)", "x = std::sqrt(y) + std::fma(a, b, c);", "exp(x)", "const double a = random.uniform(), b = random.uniform();", "Point p{random.uniform(), random.uniform()};"]
    for text, words in bad.items():
        assert any(words in line for line in findings("a.cpp", text)), text
    for text in good:
        assert not list(findings("a.cpp", text)), text
    assert list(flags("CMakeLists.txt", "-O3 -ffast-math")) and list(flags("CMakeLists.txt", "-ffp-contract=fast")) and not list(flags("CMakeLists.txt", "-ffp-contract=off"))
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "CMakeLists.txt").write_text("")
        assert check(pathlib.Path(folder)), "a build without -ffp-contract=off"


if __name__ == "__main__":
    self_test()
    lines = check(pathlib.Path(sys.argv[1]))
    print("\n".join(lines) or "check_portable.py: in order")
    sys.exit(1 if lines else 0)
