#!/usr/bin/env python3
"""Keeps the table of files to change in CONTRIBUTING.md true: check_contributing.py ROOT.

Every file that the table names must exist, and whatever a registry has must have its files, and the other way round. So it is with
the classes of Python's tests and ctest's lines.
Prints a line for each breach and exits 1 if there is one.
"""
import ast
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
library = root / "framework/lockstep"
breaches = []


def breach(text):
    breaches.append(text)


def read(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def headers_and_sources(folder, but=()):
    """The names of folder's NAME.h with NAME.cpp."""
    return {p.stem for p in folder.glob("*.cpp") if p.with_suffix(".h").exists() and p.stem not in but}


def check_table():
    """Files in backticks: below the root, below framework/lockstep, or, without a slash, in a folder that the row names before."""
    text = read(root / "CONTRIBUTING.md")
    rows = re.findall(r"^\| (?!a … |---)([^|]+) \| (.+) \|$", text, re.M)
    if len(rows) < 6:
        breach(f"CONTRIBUTING.md: {len(rows)} rows of the table found, expected at least 6")
    for subject, files in rows:
        folders = [root, library]
        for name in re.findall(r"`([^`]+)`", files):
            if "/" not in name and "." not in name:
                continue  # a word of code
            paths = [name]
            if name.endswith(".h/.cpp"):
                paths = [name.removesuffix(".h/.cpp") + ending for ending in (".h", ".cpp")]
            for path in paths:
                found = [place for place in folders if list(place.glob(path.replace("NAME", "*").rstrip("/")))]
                if not found:
                    breach(f"CONTRIBUTING.md: {subject}: there is no {path}")
                elif "/" in path:
                    folders += [place / pathlib.Path(path).parent for place in found] + [place / path for place in found]


def check_models():
    """The two registries, of classifiers and of models of fields, include every model of the zoo, and nothing else of it. What other
    files of models/ and of tools/ include is a part that models share, or a tool's."""
    zoo = root / "models/zoo"
    registries = {"registry", "field_model"}
    text = "".join(read(zoo / f"{name}.cpp") for name in registries)
    included = set(re.findall(r'#include "models/zoo/(\w+)\.h"', text)) - registries
    others = [p for folder in ("models", "tools") for p in (root / folder).rglob("*") if p.suffix in (".h", ".cpp") and p.stem not in registries]
    shared = {name for p in others for name in re.findall(r'#include "models/zoo/(\w+)\.h"', read(p)) if name != p.stem}
    models = headers_and_sources(zoo, but=registries)
    for name in sorted(models - included - shared):
        breach(f"models/zoo/{name}.h: neither models/zoo/registry.cpp nor field_model.cpp has a line for it")
    for name in sorted(included - models):
        breach(f"models/zoo: a registry includes {name}.h, and there is no {name}.h with a .cpp")


def check_datasets():
    """Every NAME_entry() that a header declares is in the catalogue, and every one there is defined beside its header."""
    folder = root / "data/datasets"
    listed = set(re.findall(r"\b(\w+)_entry\(", read(folder / "catalogue.cpp")))
    declared = {}
    for header in folder.glob("*.h"):
        for name in re.findall(r"^data::DatasetEntry (\w+)_entry\(", read(header), re.M):
            declared[name] = header
    for name, header in sorted(declared.items()):
        if name not in listed:
            breach(f"{header.relative_to(root)}: {name}_entry() is not in data/datasets/catalogue.cpp")
        if f"{name}_entry(" not in read(header.with_suffix(".cpp")):
            breach(f"{header.with_suffix('.cpp').relative_to(root)}: {name}_entry() is not defined here")
        if f'.name = "{name}"' not in read(header.with_suffix(".cpp")):
            breach(f"{header.with_suffix('.cpp').relative_to(root)}: no data set is called {name}")
        if f"| `{name}` |" not in read(root / "docs/data.md"):
            breach(f"docs/data.md: no row for the data set {name}")
    for name in sorted(listed - set(declared)):
        breach(f"data/datasets/catalogue.cpp: no header declares {name}_entry()")


def check_optimizers():
    """Every rule that optim/ defines is declared in update_rule.h, and the other way round, and has a test; every row of
    rule_table.h has what makes its rule."""
    declared = set(re.findall(r"^std::unique_ptr<UpdateRule> (\w+)\(\w+ options\);", read(library / "optim/update_rule.h"), re.M))
    tests = "".join(read(p) for p in (root / "tests/optim").glob("*.cpp"))
    defined = {}
    for source in sorted(library.glob("optim/*.cpp")):
        for name in re.findall(r"^std::unique_ptr<UpdateRule> (\w+)\(\w+Options options\) \{$", read(source), re.M):
            defined[name] = source.relative_to(root)
    for name in sorted(declared - set(defined)):
        breach(f"optim/update_rule.h: no file of optim/ defines {name}()")
    for name in sorted(set(defined) - declared):
        breach(f"{defined[name]}: {name}() is not in optim/update_rule.h")
    for name in sorted(declared):
        if f"{name}(" not in tests:
            breach(f"tests/optim: no test of the rule {name}")
    if len(declared) < 2:
        breach(f"optim/update_rule.h: {len(declared)} rules found, expected at least 2")
    sources = "".join(read(p) for p in library.glob("optim/*.cpp"))
    rows = re.findall(r'RuleEntry\{Rule::\w+, "(\w+)",[^;]*?(make_\w+)\}', read(library / "optim/rule_table.h"))
    if len(rows) < 4:
        breach(f"optim/rule_table.h: {len(rows)} rows found, expected at least 4")
    for name, maker in rows:
        if f"UpdateRule> {maker}(" not in sources:
            breach(f"optim/rule_table.h: no file of optim/ defines {maker}() of the row {name}")


def check_options():
    """Every option has one row, and the documentation or the program's help is made of these rows."""
    names = []
    for source in sorted((library / "train/options").glob("*")):
        names += re.findall(r'\{\.name = "([a-z0-9-]+)"', read(source))
    if len(names) < 40:
        breach(f"train/options: {len(names)} rows of options found, expected at least 40")
    for name in sorted({n for n in names if names.count(n) > 1}):
        breach(f"train/options: two rows are called {name}")


def check_ops():
    """Every op's name has a row among the generic kernels, unless the plan runs it without a kernel or all types run on
    one of our own; and a row that says how often it can be differentiated. Ops that plan/norm_fusion.cpp makes, only
    where a native kernel offers them, have a row among the native kernels."""
    without_kernel = {"reshape", "pointwise"}  # a view; kernels/native/register_pointwise.cpp
    kernels = "".join(read(p) for p in (library / "kernels/generic").glob("*.cpp"))
    native = "".join(read(p) for p in (library / "kernels/native").glob("register*.cpp"))
    fused = {library / name.removeprefix("lockstep/") for name in re.findall(r'#include "(lockstep/ops/.*?)"', read(library / "plan/norm_fusion.cpp"))}
    derivatives = read(library / "ops/derivatives.cpp")
    count = 0
    for header in sorted(library.glob("ops/**/*.h")):
        for body in re.findall(r"std::string_view name\(\) const override \{(.*?)\}", read(header), re.S):
            for name in re.findall(r'"(\w+)"', body):
                count += 1
                has_row = f'"{name}"' in kernels or header in fused and f'"{name}"' in native
                if not has_row and name not in without_kernel:
                    breach(f"{header.relative_to(root)}: no generic kernel has a row for {name}")
                if f'{{"{name}",' not in derivatives:
                    breach(f"{header.relative_to(root)}: ops/derivatives.cpp has no row for {name}")
    if count < 20:
        breach(f"ops/: {count} names of ops found, expected at least 20")


def check_pointwise():
    """Every row of the pointwise table has its function of Values, but what formulas alone use, and a row of its tests."""
    inner = {"copy", "negate", "select"}
    values = read(library / "ops/pointwise.cpp")
    tests = read(root / "tests/ops/elementwise_rows.cpp")
    names = re.findall(r'\.name = "(\w+)"', read(library / "ops/pointwise/table.cpp"))
    if len(names) < 20:
        breach(f"ops/pointwise/table.cpp: {len(names)} rows found, expected at least 20")
    for name in names:
        if name not in inner and f'apply_pointwise("{name}"' not in values:
            breach(f"ops/pointwise.cpp: no function of Values applies {name}")
        if name not in inner and name != "gate" and not re.search(rf"\b{name}\b", tests):
            breach(f"tests/ops/elementwise_rows.cpp: no row for {name}")


def check_exit_codes():
    """docs/commands.md has the table of core/exit_status.h."""
    header = read(library / "core/exit_status.h")
    numbers = dict(re.findall(r"(kExit\w+) = (\d+);", header))
    entries = re.findall(r'ExitStatus\{(\w+),\s+"([^"]+)"\}', header)
    if len(entries) < 6:
        breach(f"core/exit_status.h: {len(entries)} rows found, expected at least 6")
    for number, meaning in entries:
        row = f"| {numbers.get(number, number)} | {meaning} |"
        if row not in read(root / "docs/commands.md"):
            breach(f"docs/commands.md: there is no row '{row}', as core/exit_status.h has it")


def classes_with_tests(script):
    """The classes that have test_* methods, of their own or of a class of the same script."""
    classes = {c.name: c for c in ast.parse(read(script)).body if isinstance(c, ast.ClassDef)}

    def has_tests(name):
        if name not in classes:
            return False
        own = any(isinstance(f, ast.FunctionDef) and f.name.startswith("test_") for f in classes[name].body)
        return own or any(isinstance(base, ast.Name) and has_tests(base.id) for base in classes[name].bases)
    return {name for name in classes if has_tests(name)}


def check_test_classes():
    """Every class of tests in a Python script has its ctest line, and every line its class. A line of chaos has a name before the class."""
    count = 0
    for folder in ("system", "cluster", "chaos"):
        lines = re.findall(rf"^ *lockstep_{folder}_test\((\S+) (\w+) ", read(root / f"tests/{folder}/CMakeLists.txt"), re.M)
        listed = {("chaos" if folder == "chaos" else script, name) for script, name in lines}
        scripts = sorted((root / f"tests/{folder}").glob("test_*.py"))
        found = {(script.stem.removeprefix("test_"), name) for script in scripts for name in classes_with_tests(script)}
        for script, name in sorted(found - listed):
            breach(f"tests/{folder}/CMakeLists.txt: no line for the class {name} of test_{script}.py")
        for script, name in sorted(listed - found):
            breach(f"tests/{folder}/CMakeLists.txt: test_{script}.py has no class {name} with tests")
        count += len(found)
    if count < 80:
        breach(f"tests: {count} classes of Python's tests found, expected at least 80")


def check_parity_classes():
    """Every class of tests in a rows_*.py has its place in a test of parity, and every class of these tests is there."""
    text = read(root / "tests/parity/CMakeLists.txt")
    listed = {name for words in re.findall(r"^ *lockstep_parity_test\(\w+ ([\w\s]+)\)", text, re.M) for name in words.split()}
    found = {name: script for script in sorted((root / "tests/parity").glob("rows_*.py")) for name in classes_with_tests(script)}
    for name in sorted(set(found) - listed):
        breach(f"tests/parity/CMakeLists.txt: no test has the class {name} of {found[name].name}")
    for name in sorted(listed - set(found)):
        breach(f"tests/parity/CMakeLists.txt: no rows_*.py has a class {name} with tests")
    if len(found) < 20:
        breach(f"tests/parity: {len(found)} classes of tests found, expected at least 20")


for check in (check_table, check_models, check_datasets, check_optimizers, check_options, check_ops,
              check_pointwise, check_exit_codes, check_test_classes, check_parity_classes):
    check()
for line in breaches:
    print(line)
if breaches:
    print(f"check_contributing.py: {len(breaches)} breaches")
    sys.exit(1)
print("check_contributing.py: the table is true")
