#!/usr/bin/env python3
"""Holds the recipes of packages to CMakeLists.txt: check_recipes.py ROOT.

The recipes of Spack and EasyBuild and the two lists of scripts/setup.sh name every library that CMake looks for, and no other; the
options that recipes set exist; versions agree; and nothing is fetched when CMake configures. Prints a line for each breach and exits 1
if there is one.
"""
import ast
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
breaches = []

# What find_package() or pkg-config calls it: the names in Spack, in EasyBuild (None: the tool chain brings it, or there is none), in
# Debian and in RHEL's archive (None: there is none).
NAMES = {
    "MPI": ("mpi", None, "libopenmpi-dev", "openmpi-devel"),
    "fmt": ("fmt", "fmt", "libfmt-dev", "fmt-devel"),
    "spdlog": ("spdlog", "spdlog", "libspdlog-dev", "spdlog-devel"),
    "CLI11": ("cli11", "CLI11", "libcli11-dev", "cmake(CLI11)"),
    "nlohmann_json": ("nlohmann-json", "nlohmann_json", "nlohmann-json3-dev", "cmake(nlohmann_json)"),
    "ZLIB": ("zlib-api", "zlib", "zlib1g-dev", "zlib-devel"),
    "LibArchive": ("libarchive", "libarchive", "libarchive-dev", "libarchive-devel"),
    "OpenSSL": ("openssl", "OpenSSL", "libssl-dev", "openssl-devel"),
    "openblas": ("blas", None, "libopenblas-openmp-dev", "openblas-devel"),
    "hdf5": ("hdf5", "HDF5", "libhdf5-dev", "hdf5-devel"),
    "libxxhash": ("xxhash", "xxHash", "libxxhash-dev", "xxhash-devel"),
    "hwloc": ("hwloc", "hwloc", "libhwloc-dev", "hwloc-devel"),
    "libjpeg": ("libjpeg-turbo", "libjpeg-turbo", "libjpeg62-turbo-dev", "libjpeg-turbo-devel"),
    "libpng": ("libpng", "libpng", "libpng-dev", "libpng-devel"),
    "minizip": ("minizip", "minizip", "libminizip-dev", "pkgconfig(minizip)"),
    "dnnl": ("onednn", None, "libdnnl-dev", None),
    "GTest": ("googletest", None, "libgtest-dev", "gtest-devel"),
}
OF_THE_COMPILER = {"Threads", "OpenMP", "PkgConfig"}
TOOLS = {"c", "cxx", "fortran", "cmake", "pkgconfig", "CMake", "Ninja", "pkgconf"}  # that build, and are no libraries


def read(path):
    return (root / path).read_text(encoding="utf-8")


def expect_same(place, named, expected):
    for name in sorted(set(expected) - set(named)):
        breaches.append(f"{place}: {name} is missing: CMake looks for it")
    for name in sorted(set(named) - set(expected)):
        breaches.append(f"{place}: {name} is named, and CMake does not look for it")


def cmake_files():
    files = [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))]
    for folder in ("framework", "data", "models", "tools", "bindings", "examples", "tests", "bench"):
        files += sorted((root / folder).rglob("CMakeLists.txt"))
    return {path.relative_to(root): re.sub(r"#.*", "", path.read_text(encoding="utf-8")) for path in files if path.exists()}


def looked_for(files):
    """The libraries that the build looks for, by CMake's or pkg-config's name."""
    found = set()
    for text in files.values():
        found |= {{"HDF5": "hdf5", "BLAS": "openblas"}.get(name, name) for name in re.findall(r"find_package\((\w+)", text)}
        for words in re.findall(r"pkg_(?:check_modules|search_module)\(\w+((?: [\w-]+)+)\)", text):
            modules = [w for w in words.split() if w not in ("REQUIRED", "QUIET", "IMPORTED_TARGET")]
            found.add("hdf5" if modules[0].startswith("hdf5") else modules[0])
        found |= set(re.findall(r"find_library\(\w+ (\w+)", text))
    return found - OF_THE_COMPILER - {"lockstep", "lockstep_c"}


def declared_options(files):
    text = "\n".join(files.values())
    return set(re.findall(r"option\((LOCKSTEP_\w+)", text)) | set(re.findall(r"set\((LOCKSTEP_\w+) [^)]*CACHE", text)) | {"BUILD_SHARED_LIBS"}


def check_options(place, text, options):
    named = re.findall(r"(?:\b|-D)(LOCKSTEP_[A-Z_]+|BUILD_SHARED_LIBS)\b", text)
    for name in sorted(set(named) - options):
        breaches.append(f"{place}: the option {name} is not declared")
    if not named:
        breaches.append(f"{place}: it sets no option, expected some")


def check_spack(files, libraries, options, version):
    place = "packaging/spack/packages/lockstep/package.py"
    text = read(place)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]

    def first(name):
        return [call.args[0].value for call in calls if call.func.id == name]

    if first("version") != [version]:
        breaches.append(f"{place}: the versions are {first('version')}, and CMakeLists.txt has {version}")
    specs = [re.match(r"([\w-]+)(?:@(\S+))?", spec).groups() for spec in first("depends_on")]
    expect_same(place, {name for name, _ in specs} - TOOLS, {NAMES[name][0] for name in libraries})
    least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", files[pathlib.Path("CMakeLists.txt")]).group(1)
    majors = re.search(r'dnnl_major MATCHES "\^\[(\d)(\d)\]\$"', files[pathlib.Path("framework/CMakeLists.txt")]).groups()
    wanted = {"cmake": f"{least}:", "onednn": f"{majors[0]}.6:{majors[1]}"}
    for name, range_ in specs:
        if range_ != wanted.get(name):
            breaches.append(f"{place}: {name}@{range_}, expected @{wanted.get(name)} as CMake's files have it")
    for call in calls:
        if call.func.id == "conflicts" and not call.args[0].value.startswith("%gcc@:"):
            breaches.append(f"{place}: a conflict with {call.args[0].value}, of which CMakeLists.txt says nothing")
    variants = set(first("variant"))
    for name in re.findall(r'define_from_variant\("\w+", "(\w+)"\)', text) + re.findall(r'when="\+(\w+)"', text):
        if name not in variants:
            breaches.append(f"{place}: there is no variant {name}")
    check_options(place, text, options)


def check_easybuild(files, libraries, options, version):
    recipes = sorted((root / "packaging/easybuild").glob("*.eb"))
    if len(recipes) != 1:
        breaches.append(f"packaging/easybuild: {len(recipes)} recipes, expected one")
    for path in recipes:
        place = path.relative_to(root)
        values = {}
        text = path.read_text(encoding="utf-8")
        exec(compile(text, str(place), "exec"), {"SYSTEM": "system"}, values)  # a recipe is assignments in Python
        chain = values["toolchain"]
        if values["version"] != version:
            breaches.append(f"{place}: version {values['version']}, and CMakeLists.txt has {version}")
        if path.name != f"{values['name']}-{values['version']}-{chain['name']}-{chain['version']}.eb":
            breaches.append(f"{place}: its name is not that of its version and tool chain")
        expected = {NAMES[name][1] for name in libraries} - {None}
        expect_same(place, {entry[0] for entry in values["dependencies"]}, expected)
        for tool in ("LOCKSTEP_WITH_ONEDNN", "LOCKSTEP_BUILD_TESTS", "LOCKSTEP_BUILD_BENCH"):  # whose libraries are no dependencies
            if f"-D{tool}=OFF" not in values["configopts"]:
                breaches.append(f"{place}: -D{tool}=OFF is missing: the recipe does not bring what it needs")
        cmake = dict((entry[0], entry[1]) for entry in values["builddependencies"])["CMake"]
        least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", files[pathlib.Path("CMakeLists.txt")]).group(1)
        if [int(n) for n in cmake.split(".")] < [int(n) for n in least.split(".")]:
            breaches.append(f"{place}: CMake {cmake}, expected {least} or newer")
        targets = {p for p in re.findall(r"bin/([\w-]+)", str(values["sanity_check_paths"]["files"]))}
        built = "\n".join(files.values())
        for name in sorted(targets):
            if f"OUTPUT_NAME {name})" not in built and not (root / f"models/{name}.cpp").exists():
                breaches.append(f"{place}: no program is called {name}")
        check_options(place, text, options)


def check_setup(libraries):
    text = read("scripts/setup.sh")
    for place, column, pattern in (("Debian", 2, r"^packages=\((.*?)^\)"), ("RHEL", 3, r"^  packages=\((.*?)^  \)")):
        found = re.search(pattern, text, re.M | re.S)
        if not found:
            breaches.append(f"scripts/setup.sh: no list of packages for {place}")
            continue
        words = set(re.sub(r"#.*", "", found.group(1)).replace("'", "").split())
        if "python3" not in words:
            breaches.append(f"scripts/setup.sh: python3 is missing in the list for {place}: the tests, which are built by default, need it")
        for name in sorted(libraries):
            package = NAMES[name][column]
            if package and package not in words:
                breaches.append(f"scripts/setup.sh: {package} is missing in the list for {place}: CMake looks for {name}")
        libraries_named = {w for w in words if w.endswith(("-dev", "-devel")) or "(" in w}
        for word in sorted(libraries_named - {entry[column] for entry in NAMES.values()}):
            breaches.append(f"scripts/setup.sh: {word} is in the list for {place}, and CMake does not look for it")


def check_no_network(files):
    for place, text in files.items():
        for word in re.findall(r"FetchContent|ExternalProject|file\(DOWNLOAD|CPMAddPackage", text):
            breaches.append(f"{place}: {word}: nothing is fetched when CMake configures")


def main():
    files = cmake_files()
    found = looked_for(files)
    for name in sorted(found - set(NAMES)):
        breaches.append(f"CMake looks for {name}: tests/scripts/check_recipes.py has no row for it; add its names to the recipes too")
    for name in sorted(set(NAMES) - found):
        breaches.append(f"tests/scripts/check_recipes.py: a row for {name}, and CMake does not look for it")
    libraries = found & set(NAMES)
    version = re.search(r"project\(lockstep VERSION ([\d.]+)", files[pathlib.Path("CMakeLists.txt")]).group(1)
    options = declared_options(files)
    check_spack(files, libraries, options, version)
    check_easybuild(files, libraries, options, version)
    check_setup(libraries)
    check_no_network(files)
    for line in breaches:
        print(line)
    if breaches:
        print(f"check_recipes.py: {len(breaches)} breaches")
        sys.exit(1)
    print(f"check_recipes.py: {len(libraries)} libraries, {len(options)} options: the recipes are true")


main()
