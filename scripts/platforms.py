#!/usr/bin/env python3
"""Builds and tests this checkout on each platform that can be had on this machine, and keeps the table of docs/platforms.md.

scripts/platforms.py [ROW...] [--tests quick|full|none] [-R PATTERN] [-E PATTERN] [--targets NAMES] [-j N] [--list]

A ROW is one of the table: the compiler, MPI and libraries of this machine (here), the same without oneDNN, with clang, with MPICH, with the reference BLAS; Debian 13 in
a chroot (scripts/check_debian.sh: root and debootstrap); AArch64, cross-compiled, its ranks emulated (scripts/check_aarch64.sh). Without ROWs all that are possible are built, each in build/NAME. Where
build/here has the first row's programs, those of each other row train six models beside them, and the table says whether all losses and weights have the same bits (--bits portable,
tests/system/test_portable.py); not from a chroot, whose programs need its libraries.
What a row needs and this machine lacks is said, and the row is left out. Each row's result replaces the one in build/platforms.json;
--write puts them into the table of docs/platforms.md, whose other rows stay. The exit code is 1 where a row failed, 77 where none could
be tried."""

import argparse
import datetime
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "build" / "platforms.json", ROOT / "docs" / "platforms.md"
BEGIN, END = "<!-- scripts/platforms.py writes this table -->\n", "<!-- its end -->\n"
EMULATED = ["scripts/check_aarch64.sh", "--"]
TRAINED = ["train_resnet", "train_toy", "train_mnist", "train_fields", "train_gpt", "train_recsys"]  # by which rows' bits are compared
COLUMNS = ["compiler", "MPI", "oneDNN", "HDF5", "BLAS", "builds", "quick", "full", "bits", "date"]
AMONG = "among the full"
TIERS = {"quick": ["-L", "^quick$"], "full": ["-LE", "^long$"]}

# name: what the table says, CMake's options, programs without which it cannot be
ROWS = {
    "here": ("{system}", [], ["mpirun"]),
    "generic": ("{system}, without oneDNN", ["-DLOCKSTEP_WITH_ONEDNN=OFF"], ["mpirun"]),
    "clang": ("{system}, clang", ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"], ["clang++", "mpirun"]),
    "mpich": ("{system}, MPICH", [f"-DMPI_{language}_COMPILER={wrapper}.mpich" for language, wrapper in
                                 (("C", "mpicc"), ("CXX", "mpicxx"), ("Fortran", "mpifort"))], ["mpicc.mpich", "mpirun.mpich"]),
    "blas": ("{system}, reference BLAS", ["-DLOCKSTEP_BLAS=Generic"], ["mpirun"]),
    "trixie": ("Debian 13, in a chroot", [], ["debootstrap"]),
    "aarch64": ("AArch64, emulated by QEMU", ["-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake"], ["aarch64-linux-gnu-g++", "qemu-aarch64-static", "mpirun"]),
}


def output_of(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options).stdout


def environment_of(row):
    """With MPICH's programs under their common names first in PATH, where Debian has Open MPI's."""
    variables = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    variables["ASAN_OPTIONS"] = variables.get("ASAN_OPTIONS", "detect_leaks=0")
    if row == "blas":  # Debian chooses the library of libblas.so.3 by a link; the reference's own folder comes first
        folders = [str(path.parent) for path in sorted(Path("/usr/lib").glob("*/blas/libblas.so.3"))]
        variables["LD_LIBRARY_PATH"] = ":".join(folders + [variables.get("LD_LIBRARY_PATH", "")]).strip(":")
    if row == "mpich":
        folder = ROOT / "build" / "mpich-programs"
        folder.mkdir(parents=True, exist_ok=True)
        names = {name: f"{name}.mpich" for name in ("mpirun", "mpiexec", "mpicc", "mpicxx", "mpifort")} | {"hydra_pmi_proxy": "hydra_pmi_proxy"}
        for name, program in names.items():
            link = folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(shutil.which(program) or f"/usr/bin/{program}")
        variables["PATH"] = f"{folder}:{variables['PATH']}"
        # Machines for tests have fewer cores than ranks, and MPICH's ranks would keep them while they wait.
        preloaded = folder / "mpich_yield.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", preloaded, ROOT / "scripts" / "mpich_yield.c", "-ldl"], check=True)
        variables["LD_PRELOAD"] = ":".join([str(preloaded), *filter(None, [variables.get("LD_PRELOAD")])])
    return variables


def versions(build, row, variables):
    """Of what the build has found, as headers, programs and pkg-config say."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
    emulated = EMULATED if row == "aarch64" else []
    compiler = "aarch64-linux-gnu-g++" if emulated else cache["CMAKE_CXX_COMPILER"]
    first = output_of([compiler, "--version"]).splitlines()[0]
    name = "clang" if "clang" in first else "gcc"
    mpirun = output_of(["mpirun", "--version"], env=variables)
    open_mpi, hydra = re.search(r"Open MPI\)? ([\d.]+)", mpirun), re.search(r"Version: +([\d.]+)", mpirun)
    includes = "#if __has_include(<dnnl_version.h>)\n#include <dnnl_version.h>\n#endif\n#include <H5public.h>\n"
    root = output_of([*emulated, "printenv", "LOCKSTEP_AARCH64_ROOT"], cwd=ROOT).strip() if emulated else ""
    folders = [f"-I{root}/usr/include/hdf5/serial", *([f"--sysroot={root}"] if root else [])]
    defined = dict(re.findall(r"^#define (\w+) (\S+)$", output_of([compiler, "-E", "-dM", "-x", "c++", *folders, "-"], input=includes), re.M))
    number = lambda *names: ".".join(defined.get(n, "?") for n in names)
    return {"compiler": f"{name} {output_of([compiler, '-dumpfullversion' if name == 'gcc' else '-dumpversion']).strip()}",
            "MPI": f"Open MPI {open_mpi[1]}" if open_mpi else f"MPICH {hydra[1]}" if hydra else "?",
            "oneDNN": "none" if cache.get("LOCKSTEP_WITH_ONEDNN") == "OFF" or "DNNL_VERSION_MAJOR" not in defined
                      else number("DNNL_VERSION_MAJOR", "DNNL_VERSION_MINOR", "DNNL_VERSION_PATCH"),
            "HDF5": number("H5_VERS_MAJOR", "H5_VERS_MINOR", "H5_VERS_RELEASE"),
            "BLAS": "reference" if row == "blas" else f"OpenBLAS {output_of([*emulated, 'pkg-config', '--modversion', 'openblas'], cwd=ROOT).strip()}"}


def run(command, log, variables, row="here"):
    with open(log, "w") as file:
        status = subprocess.run([*(EMULATED if row == "aarch64" else []), *command], cwd=ROOT, env=variables, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    return status, log.read_text(errors="replace")


def tests(build, tier, arguments, variables, row):
    words = ["ctest", "--test-dir", str(build), "-j", str(3 * arguments.jobs), "--output-on-failure", "--no-tests=error", *TIERS[tier]]
    for option, pattern in (("-R", arguments.R), ("-E", arguments.E)):
        words += [option, pattern] if pattern else []
    _, text = run(words, build / f"platforms-{tier}.log", variables, row)
    found = re.search(r"(\d+) tests? failed out of (\d+)", text)
    if not found:
        return "none ran"
    failed, total = map(int, found.groups())
    skipped = text.count("***Skipped")
    names = re.findall(r"^\s+\d+ - (\S+) \((?!Skipped)", text, re.M)
    chosen = "".join(f", `{option} {pattern}`" for option, pattern in (("-R", arguments.R), ("-E", arguments.E)) if pattern).replace("|", "\\|")
    return (f"{total - failed - skipped} of {total}{f', {skipped} skipped' if skipped else ''}{chosen}"
            + (f"; failed: {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}" if failed else ""))


def bits(build, row):
    """Of what this row's programs train, compared with those of the first row."""
    variables = environment_of("here") | {"LOCKSTEP_PEER_BIN": str(build / "bin")}
    words = ["ctest", "--test-dir", str(ROOT / "build" / "here"), "-R", r"^system\.portable\.Pairs$", "--output-on-failure", "--no-tests=error"]
    status, _ = run(words, build / "platforms-bits.log", variables, row)
    return "equal" if status == 0 else f"failed: build/{build.name}/platforms-bits.log"


def try_here(row, arguments):
    build, variables = ROOT / "build" / (arguments.build or row), environment_of(row)
    build.mkdir(parents=True, exist_ok=True)
    status, text = run(["cmake", "--preset", "release", "-B", str(build), *ROWS[row][1]], build / "platforms-cmake.log", variables, row)
    if status != 0:
        return {"builds": f"no: {text.strip().splitlines()[-1]}", "ok": False}
    targets = arguments.targets.split() if arguments.targets else []
    status, text = run(["cmake", "--build", str(build), "-j", str(arguments.jobs), "--", "-k", "0", *targets], build / "platforms-build.log", variables, row)
    warnings = len(set(re.findall(r"^.*: warning: .*$", text, re.M)))
    result = versions(build, row, variables)
    result["builds"] = f"{'yes' if status == 0 else 'no'}, {warnings} warnings{' (of what the tests need)' if targets else ''}"
    result["ok"] = status == 0 and warnings == 0
    if arguments.tests != "none":
        result[arguments.tests] = tests(build, arguments.tests, arguments, variables, row)
        result["ok"] = result["ok"] and "failed" not in result[arguments.tests] and result[arguments.tests] != "none ran"
    first = ROOT / "build" / "here"
    if build != first and all((folder / "bin" / name).exists() for folder in (build, first) for name in TRAINED):
        result["bits"] = bits(build, row)
        result["ok"] = result["ok"] and result["bits"] == "equal"
    return result


def try_chroot(arguments):
    inner = [f"--{name}={value}" for name, value in (("tests", arguments.tests), ("targets", arguments.targets), ("jobs", arguments.jobs), ("build", arguments.build)) if value]
    inner += [word for name in ("R", "E") if (pattern := getattr(arguments, name)) for word in (f"-{name}", pattern)]
    command = ["scripts/check_debian.sh", "trixie", "--", "python3", "scripts/platforms.py", "here", "--json", *inner]
    text = output_of(command, cwd=ROOT)
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"builds": f"no: {text.strip()[-200:]}", "ok": False}


def system_name():
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', Path("/etc/os-release").read_text(), re.M))
    return f"{release.get('ID', '?').capitalize()} {release.get('VERSION_ID', '')}"


def rows_of(page):
    """Results as an earlier table has them: build/ of another machine, or a removed one, is not at hand."""
    results = {}
    for line in re.findall(r"^\| .*$", page[page.index(BEGIN):page.index(END)], re.M):
        platform, *cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        for row, (name, *_) in ROWS.items():
            if re.fullmatch(re.escape(name).replace(r"\{system\}", r"\w+ [\d.]+"), platform):
                results[row] = {"platform": platform} | {c: cell for c, cell in zip(COLUMNS, cells) if cell not in ("-", AMONG)}
    return results


def table(results):
    lines = [f"| platform | {' | '.join(COLUMNS[:6])} | quick tests | full tests | bits | date |", "|" + " --- |" * (len(COLUMNS) + 1)]
    for row in ROWS:
        if row in results:
            result = ({"quick": AMONG} if "full" in results[row] else {}) | results[row]
            lines.append(f"| {result['platform']} | " + " | ".join(result.get(c, "-") for c in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def read_results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(row, result):
    """Another process may keep those of another row meanwhile."""
    with open(RESULTS.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = read_results()
        results[row] = results.get(row, {}) | result
        written = RESULTS.with_suffix(".new")
        written.write_text(json.dumps(results, indent=1))
        written.replace(RESULTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--tests", choices=("quick", "full", "none"), default="quick")
    parser.add_argument("-R", help="of the tests, those whose names match")
    parser.add_argument("-E", help="but not these")
    parser.add_argument("--targets", help="build these, and not all")
    parser.add_argument("--build", help="the name of the folder below build/ of a single row, in place of the row's own")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="only say which rows can be tried here")
    parser.add_argument("--write", action="store_true", help="put the results so far into the table of docs/platforms.md")
    parser.add_argument("--json", action="store_true", help="print the result, and keep none: for the call in a chroot")
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(unknown))}, expected some of {', '.join(ROWS)}")
    failed, tried = False, 0
    for row in arguments.rows or ([] if arguments.write else ROWS):
        lacking = [p for p in ROWS[row][2] if not shutil.which(p)]
        if lacking or (row == "trixie" and os.geteuid() != 0):
            print(f"platforms.py: {row} is left out: it needs {', '.join(lacking) or 'root'}", file=sys.stderr)
            continue
        tried += 1
        if arguments.list:
            print(row)
            continue
        result = try_chroot(arguments) if row == "trixie" else try_here(row, arguments)
        failed = failed or not result["ok"]
        if arguments.json:
            print(json.dumps(result))
            continue
        result |= {"platform": ROWS[row][0].format(system=system_name()), "date": datetime.date.today().isoformat()}
        keep(row, result)
        print(f"{row}: {json.dumps(result)}", flush=True)
    if arguments.write:
        text = PAGE.read_text()
        PAGE.write_text(text[:text.index(BEGIN) + len(BEGIN)] + "\n" + table(rows_of(text) | read_results()) + "\n" + text[text.index(END):])
    return 1 if failed else 0 if tried or arguments.write else 77


if __name__ == "__main__":
    sys.exit(main())
