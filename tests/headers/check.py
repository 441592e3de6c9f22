"""Compiles each header for users by itself, and refuses those that bring a library, or the engine of the trainer, that programs need not
pay for.

check.py ROOT COMPILER FLAG... < list of headers, one a line; exits 1 if there is a breach.

Most of the time would go into reading the same headers of the standard library again for each header. A header is compiled behind those of
them that it includes itself, directly or through others; they are precompiled for the headers that share them. So a header that does not
include what it uses fails as it would alone.
"""

import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, COMPILER, FLAGS = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
HEAVY = re.compile(r"\S*/(?:CLI|nlohmann|spdlog|fmt)/\S*|\S*/parallel/gradient_engine\.h")
# Headers whose own standard headers are precompiled, the one with most of them first.
SHARED = ("lockstep/nn/module.h", "lockstep/graph/op.h", "lockstep/graph/value.h")


@functools.cache
def standard(header):
    """The headers of the C++ standard library that a header includes, directly or through others of ours, whatever the platform."""
    found, depth = set(), 0
    for line in (ROOT / "framework" / header).read_text().splitlines():
        depth += line.startswith("#if") - line.startswith("#endif")
        if depth == 0 and (included := re.match(r'#include (?:<([a-z_]+)>|"(lockstep/[^"]+)")', line)):
            found |= {included[1]} if included[1] else standard(included[2])
    return frozenset(found)


def compiler(*arguments):
    return subprocess.run([COMPILER, "-std=c++20", *FLAGS, f"-I{ROOT / 'framework'}", *map(str, arguments)], check=False).returncode


def precompiled(folder):
    """(headers of the standard library, the file with them) for each of SHARED."""
    for number, header in enumerate(SHARED):
        file = folder / f"shared{number}.h"
        file.write_text("".join(f"#include <{name}>\n" for name in sorted(standard(header))))
        if compiler("-x", "c++-header", file, "-o", f"{file}.gch") != 0:
            sys.exit(f"check.py: the standard headers of {header} cannot be compiled")
        yield standard(header), file


def fault(header, shared, folder):
    """What is wrong with a header; nothing if all is well."""
    source, dependencies = folder / "alone.cpp", folder / "alone.d"
    source.write_text(f'#include "{header}"\n')
    before = next((["-include", file] for names, file in shared if names <= standard(header)), [])
    if compiler(*before, "-fsyntax-only", "-MD", "-MF", dependencies, source) != 0:
        return "does not compile by itself"
    heavy = HEAVY.search(dependencies.read_text())
    return f"includes {heavy[0]}" if heavy else ""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared = list(precompiled(folder))
        faults = [f"{header}: {text}" for header in sys.stdin.read().split() if (text := fault(header, shared, folder))]
    for text in faults:
        print(text, file=sys.stderr)
    return 1 if faults else 0


sys.exit(main())
