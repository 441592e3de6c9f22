"""Hosts for the doctor: a set-up with nothing wrong, and what breaks it, in one way each, with what the doctor is to say."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import hosts

sys.path.insert(1, str(Path(__file__).parents[1] / "system"))
import support  # noqa: E402

PORTS = "61000-61007"


class Setup:
    """A cluster with nothing wrong, and the doctor's options."""

    def __init__(self, test, number=2, rate=None, cluster=None):
        self.cluster = cluster or test.cluster(number, slots=1, rate=rate)
        self.hosts = ["-H", ",".join(f"{host}:1" for host in self.cluster.names)]
        self.before = []  # the words before the doctor's own: variables, limits
        self.scratch, self.test = test.scratch, test
        self.lockstep, self.program = support.BIN / "lockstep", self.scratch / "program"
        self.program.write_bytes(b"any program")
        self.program.chmod(0o755)
        self.data, self.output = self.scratch / "data", self.scratch / "output"
        for folder in (self.data, self.output):
            folder.mkdir(exist_ok=True)
        (self.data / "images").write_bytes(bytes(5000))
        (self.data / "labels").write_bytes(bytes(1000))
        self.options = ["--ports", PORTS, "--threads", 1, "--program", self.program, "--data-dir", self.data, "--output", self.output]

    def on(self, host, *command):
        done = subprocess.run(self.cluster.command(host, command, "/"), capture_output=True, text=True)
        self.test.assertEqual(done.returncode, 0, done)
        return done.stdout

    def know(self, *names):
        """The first host knows the key of the hosts by these names too."""
        key = (self.cluster.directory / "host_key.pub").read_text()
        with open(self.cluster.directory / "known_hosts", "a") as known:
            known.write("".join(f"{name} {key}" for name in names))

    def without(self, option):
        """The option and its value are not given."""
        at = self.options.index(option)
        del self.options[at:at + 2]

    def cover(self, host, path, source):
        """Another file or folder in the place of one, on that host alone."""
        self.on(host, "mount", "--bind", source, path)

    def wrap(self, host, words):
        """On that host the doctor's program is started by these words of a shell."""
        original, wrapper = self.scratch / "original", self.scratch / "wrapper"
        shutil.copy(self.lockstep, original)
        wrapper.write_text(f"#!/bin/sh\n{words} {original} \"$@\"\n")
        wrapper.chmod(0o755)
        self.cover(host, self.lockstep, wrapper)

    def doctor(self, *more):
        settings = [f"{name}={value}" for name, value in {**hosts.MACHINE, "OMPI_MCA_btl": hosts.transports()}.items()]
        words = ["env", *settings, *self.before, self.lockstep, "doctor", "--json", *self.hosts, "--ssh-args", f"-F {self.cluster.directory}/ssh_config",
                 *self.options, *more]
        done = self.cluster.run_limited(self.cluster.command("node1", words), support.LIMIT, subprocess.PIPE)
        self.test.assertTrue(done.stdout.startswith("{"), done)
        report = json.loads(done.stdout)
        self.test.assertEqual(done.returncode, ["green", "yellow", "red"].index(report["level"]), done)
        return report["findings"]


def wrong_interface(setup):
    setup.options += ["--interface", "lo"]


def closed_port(setup):
    rules = "table inet filter {\nchain input {\ntype filter hook input priority 0; policy accept;\ntcp dport 61000-61007 drop\n}\n}\n"
    setup.on("node2", "sh", "-c", f"nft -f - <<'END'\n{rules}END")


def occupied_port(setup):
    holder = "import socket, time; s = socket.create_server(('', 61003)); print(flush=True); time.sleep(1000)"
    setup.test.start(setup.cluster.command("node2", [sys.executable, "-c", holder], "/")).stdout.readline()


def docker_bridge(setup):
    for host in ("node1", "node2"):
        setup.on(host, "ip", "link", "add", "docker0", "type", "bridge")
        setup.on(host, "ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
        setup.on(host, "ip", "link", "set", "docker0", "up")


def refused_key(setup):
    keys = setup.scratch / "no_keys"
    keys.write_text("")
    setup.cover("node2", setup.cluster.directory / "user_key.pub", keys)


def unknown_host_key(setup):
    known = setup.scratch / "known_hosts"
    lines = (setup.cluster.directory / "known_hosts").read_text().splitlines(keepends=True)
    known.write_text("".join(line for line in lines if "node2" not in line))
    setup.cover("node1", setup.cluster.directory / "known_hosts", known)


def closed_ssh_port(setup):
    setup.options += ["-p", "2222"]


def other_binary(setup):
    other = setup.scratch / "other_program"
    shutil.copy(setup.program, other)
    with open(other, "ab") as file:
        file.write(b"x")
    setup.cover("node2", setup.program, other)


def other_data(setup):
    other = setup.scratch / "other_data"
    shutil.copytree(setup.data, other)
    (other / "labels").write_bytes(b"\1" * 1000)
    setup.cover("node2", setup.data, other)


def small_shared_memory(setup):
    setup.on("node2", "mount", "-o", "remount,size=64m", "/dev/shm")


def more_threads_than_cores(setup):
    setup.options[setup.options.index("--threads") + 1] = 2 * os.cpu_count()


def equal_host_names(setup):
    setup.on("node2", "hostname", "node1")


def lossy_link(setup):
    setup.cluster.loss("node2", 5)


def full_disk(setup):
    setup.on("node1", "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", setup.output)


def clock_off(setup):
    setup.wrap("node2", "exec faketime -f +60s")


def open_mpi():
    loaded = subprocess.run(["ldd", support.BIN / "lockstep"], capture_output=True, text=True, check=True).stdout
    return next(Path(line.split()[2]).resolve() for line in loaded.splitlines() if "libmpi." in line)


def other_open_mpi(setup):
    library = open_mpi()
    other = setup.scratch / "libmpi.so.40"
    content = library.read_bytes()
    at = content.index(b"\x14\0\0\0\x03\0\0\0GNU\0") + 12  # the linker's id of the build, 20 bytes
    other.write_bytes(content[:at] + bytes(20) + content[at + 20:])
    setup.cover("node2", library, other)


def unresolved_name(setup):
    lines = Path(setup.cluster.directory / "hosts").read_text().splitlines(keepends=True)
    other = setup.scratch / "hosts"
    other.write_text("".join(line for line in lines if "node1" not in line))
    setup.cover("node2", "/etc/hosts", other)


def slow_link(setup):
    """The rate of the cables is what is wrong."""


@dataclass
class Broken:
    make: Callable
    level: str
    check: str  # the one that tells it, while all others are green
    says: str
    where: str = ""
    rate: str | None = None
    shares: bool = False  # what is wrong is not of the hosts, so they can be those of other rows


BROKEN = [
    Broken(wrong_interface, "red", "interfaces", "set to lo, which reaches no other host", shares=True),
    Broken(closed_port, "red", "ports", "node2 has nftables at work", "node1 to node2"),
    Broken(occupied_port, "red", "ports", "port 61003 of --ports is taken by python3", "node2"),
    Broken(docker_bridge, "red", "interfaces", "docker0 has the address 172.17.0.1", "node1, node2"),
    Broken(refused_key, "red", "login", "refuses the key", "node2"),
    Broken(unknown_host_key, "red", "login", "host key is not known", "node2"),
    Broken(closed_ssh_port, "red", "login", "no ssh server answers on port 2222", "node2", shares=True),
    Broken(other_binary, "red", "build", "program: 12 bytes"),
    Broken(other_data, "red", "data", "labels 1000 bytes"),
    Broken(small_shared_memory, "yellow", "shared-memory", "/dev/shm has 64 MiB", "node2"),
    Broken(more_threads_than_cores, "yellow", "cores", "take turns", shares=True),
    Broken(equal_host_names, "red", "host-names", "2 nodes bear the host name node1"),
    Broken(slow_link, "yellow", "links", "MB/s, expected 50 or more", rate="20mbit"),
    Broken(lossy_link, "yellow", "links", "packets are lost"),
    Broken(full_disk, "red", "disk", "left for checkpoints", "node1"),
    Broken(clock_off, "yellow", "clocks", "s ahead of that of node1", "node2"),
    Broken(other_open_mpi, "red", "mpi", "the build of the MPI library"),
    Broken(unresolved_name, "red", "names", "the name node1 does not resolve", "node2"),
]
