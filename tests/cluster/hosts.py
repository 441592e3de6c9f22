#!/usr/bin/python3
"""Several hosts on one machine, for MPI: hosts.py up N [options], then any of

  exec HOST COMMAND...      run a command on a host, in this directory
  mpirun K PROGRAM...       start K ranks over all hosts, from node1 through ssh (--limit SECONDS before K)
  link-down HOST            pull the host's cable: it sees no carrier, its peers hear nothing more
  link-up HOST              plug it in again
  loss HOST PERCENT         drop that share of its frames, both ways, unseen by the senders; 0 ends it
  kill HOST                 end every process of the host at once; it does not come back
  down                      remove hosts, network and files

A host is a set of Linux namespaces: its own name, network, /etc/hosts, /dev/shm, /run, /sys and processes, with an ssh
server as process 1, so that whatever runs there ends with it. All else (programs, /tmp) is this machine's. The hosts
hang on one bridge by a cable each; a cable's rate holds both ways. The network is unreachable from outside, so clusters
do not disturb each other. With several up, LOCKSTEP_CLUSTER says which one is meant (the name in up's first line).

Tests use the class: `with Cluster(2) as cluster: cluster.mpirun(4, [program])`. Whatever way its process ends, the
kernel ends the hosts too; files that a killed process left are removed by the next cluster's start.
"""

import argparse
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["PATH"] += ":/usr/sbin:/sbin"
PREFIX = "lockstep-cluster-"
NETWORK = "10.77.0"  # seen inside a cluster only
SECOND_NETWORK = "10.78.0"  # where a test asks for one

# Process 1 of a host: says its number outside, waits for its network card, and becomes the ssh server.
INIT = """set -e
directory=$1 name=$2 address=$3
read -r pid _ </proc/self/stat # still the outer /proc
mount -t proc proc /proc
hostname "$name"
mount --bind "$directory/hosts" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd /run/cgroup
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys # lists this host's network cards
mount --rbind /run/cgroup /sys/fs/cgroup
echo "$pid"
read -r _
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
exec "$(command -v sshd)" -D -e -f "$directory/sshd_config"
"""


class ClusterError(Exception):
    status = 1  # of this script


class Unavailable(ClusterError):
    """This machine cannot have such hosts: the reason."""
    status = 77


def call(*command, text=""):
    """A tool that has to succeed, with what it reads."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")


def in_network(pid, *command, **options):
    call("nsenter", "-t", str(pid), "-n", *command, **options)


def prepare_holder():
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # what its owner blocks is nothing to a host
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; it stays in force over exec


def check_root():
    if os.geteuid() != 0:
        raise Unavailable("hosts made of namespaces need root")


def check_available():
    check_root()
    for tool in ("ip", "tc", "nft", "unshare", "nsenter", "sshd", "ssh", "ssh-keygen", "mpirun"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed (as root, scripts/setup.sh --tests installs it)")
    probe = ("mount -t sysfs sysfs /sys && ip link add cable type veth peer name card && ip link add bridge type bridge && "
             "tc qdisc add dev cable root tbf rate 1gbit burst 256kb latency 50ms")
    try:
        call("unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "sh", "-c", probe)
    except ClusterError as error:
        raise Unavailable(f"no namespaces, veth, bridge or tbf here (a container without --privileged?): {error}") from error


def is_child(pid, parent):
    """Whether the process lives and is still the one that was started, its number not used again."""
    try:
        return f"\nPPid:\t{parent}\n" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@functools.cache
def open_mpi():
    """The first number of mpirun's version."""
    found = re.search(r"Open MPI\)? (\d+)", subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout)
    if not found:
        raise Unavailable("the mpirun of PATH is not Open MPI's")
    return int(found[1])


def option_of_daemons():
    return "--mca" if open_mpi() < 5 else "--prtemca"


# Variables for an mpirun of a test: what a machine of few cores needs, on which all hosts are. Each version of Open MPI reads its own names.
MACHINE = {"OMPI_MCA_orte_tmpdir_base": "/run", "OMPI_MCA_mpi_yield_when_idle": 1, "OMPI_MCA_hwloc_base_binding_policy": "none",
           "OMPI_MCA_btl_base_warn_component_unused": 0, "OMPI_MCA_plm": "rsh", "LOCKSTEP_NODE_ENV": "/dev/null",
           "PRTE_MCA_prte_tmpdir_base": "/run", "PRTE_MCA_hwloc_default_binding_policy": "none", "PRTE_MCA_plm": "ssh"}


def transports():
    """Those among ranks, by the names of this version."""
    return "self,vader,tcp" if open_mpi() < 5 else "self,sm,tcp"


def arguments_of_ssh(text):
    """The variables by which mpirun gives these words to ssh."""
    return {"OMPI_MCA_plm_rsh_args": text, "PRTE_MCA_plm_ssh_args": text}


class Hosts:
    """The hosts of a running cluster, by what its directory says; any process may use it."""

    def __init__(self, directory):
        self.directory = Path(directory)
        state = json.loads((self.directory / "state.json").read_text())
        self.owner, self.switch, self._inits = state["owner"], state["switch"], state["hosts"]
        self.names, self.hostfile = list(self._inits), self.directory / "hostfile"

    def _pid(self, host):
        if host not in self._inits:
            raise ClusterError(f"no host '{host}'; there are {', '.join(self.names)}")
        pid, holder = self._inits[host]
        if not is_child(pid, holder):
            raise ClusterError(f"{host} is no more")
        return pid

    def command(self, host, command, directory=None):
        """The arguments that run `command` on a host, with as little of the caller's environment as ssh would let through:
        a setting must not reach one host and not the others."""
        kept = [f"{name}={os.environ[name]}" for name in ("PATH", "HOME", "USER", "LANG", "TERM") if name in os.environ]
        return ["nsenter", "-t", str(self._pid(host)), "-m", "-u", "-i", "-n", "-p",
                "env", "-i", "-C", str(directory or Path.cwd()), *kept, *map(str, command)]

    def has(self, process):
        """Whether a process, by its number outside, runs on one of the hosts."""
        try:
            network = os.readlink(f"/proc/{process}/ns/net")
        except OSError:
            return False  # it has ended
        return any(os.readlink(f"/proc/{self._pid(host)}/ns/net") == network for host in self.names)

    def _port(self, host):
        self._pid(host)  # it exists
        return f"port{self.names.index(host) + 1}"

    def link(self, host, state):  # "up" or "down"
        in_network(self.switch, "ip", "link", "set", self._port(host), state)

    def loss(self, host, percent):
        """Drops what arrives at both ends of the cable: not every kernel has netem, and a sender would notice an output filter."""
        condition = f"numgen random mod 10000 < {round(percent * 100)}" if percent < 100 else ""
        for pid, device in [(self._pid(host), "eth0"), (self.switch, self._port(host))]:
            table = f"netdev loss_{device}"
            rules = f"table {table}\ndelete table {table}\n"  # the first line makes the second succeed
            if percent > 0:
                rules += (f"table {table} {{\nchain arriving {{\ntype filter hook ingress device {device} priority 0\n"
                          f"{condition} drop\n}}\n}}\n")
            in_network(pid, "nft", "-f", "-", text=rules)

    def second_network(self):
        """A second card, eth1, in each host, on a bridge of its own: 10.78.0.1 and so on."""
        in_network(self.switch, "ip", "link", "add", "bridge2", "type", "bridge")
        in_network(self.switch, "ip", "link", "set", "bridge2", "up")
        for i, host in enumerate(self.names, 1):
            in_network(self.switch, "ip", "link", "add", f"second{i}", "type", "veth", "peer", "name", "eth1", "netns", str(self._pid(host)))
            in_network(self.switch, "ip", "link", "set", f"second{i}", "master", "bridge2", "up")
            in_network(self._pid(host), "ip", "address", "add", f"{SECOND_NETWORK}.{i}/24", "dev", "eth1")
            in_network(self._pid(host), "ip", "link", "set", "eth1", "up")

    def only_ports(self, ports):
        """Each host's firewall takes new connections at these ports and at ssh's alone."""
        for host in self.names:
            in_network(self._pid(host), "nft", "-f", "-", text=(
                "table inet filter {\nchain input {\ntype filter hook input priority 0; policy drop;\n"
                f"iif lo accept\nct state established,related accept\ntcp dport {{ 22, {ports} }} accept\n}}\n}}\n"))

    def kill(self, host):
        os.kill(self._pid(host), signal.SIGKILL)  # without its process 1 the kernel ends all others
        while is_child(*self._inits[host]):
            time.sleep(0.01)

    def sweep(self):
        """Ends all that runs on the hosts but their ssh servers."""
        for host in self.names:
            if is_child(*self._inits[host]):
                subprocess.run(self.command(host, ["sh", "-c", "while kill -9 -1 2>/dev/null; do sleep 0.01; done"], "/"))

    def settings_of_mpirun(self, keepalive):
        """Parameters of Open MPI: those that its daemons read, and those of the ranks."""
        network, ssh = f"{NETWORK}.0/24", f"-F {self.directory}/ssh_config"
        of_ranks = {"btl_tcp_if_include": network, "mpi_yield_when_idle": 1, "btl_base_warn_component_unused": 0, "btl": transports()}
        # All hosts share this machine's cores.
        if open_mpi() < 5:
            daemons = {"plm": "rsh", "plm_rsh_agent": "ssh", "plm_rsh_args": ssh, "oob_tcp_if_include": network, "hwloc_base_binding_policy": "none",
                       "rmaps_base_oversubscribe": 1, "orte_tmpdir_base": "/run", "orte_abort_print_stack": 0}
        else:
            daemons = {"plm": "ssh", "plm_ssh_agent": "ssh", "plm_ssh_args": ssh, "prte_if_include": network, "hwloc_default_binding_policy": "none",
                       "rmaps_default_mapping_policy": "slot:oversubscribe", "prte_tmpdir_base": "/run"}
        if keepalive:  # nothing else notices a host that has gone silent
            daemons |= {"oob_tcp_keepalive_time": 5, "oob_tcp_keepalive_intvl": 1, "oob_tcp_keepalive_probes": 3}
        return daemons, of_ranks

    def mpirun_words(self, ranks, command, environment=None, hostfile=None, keepalive=True):
        """mpirun over all hosts, to be run on one of them; `command` may begin with options of mpirun's own."""
        daemons, of_ranks = self.settings_of_mpirun(keepalive)
        options = [word for option, settings in ((option_of_daemons(), daemons), ("--mca", of_ranks))
                   for name, value in settings.items() for word in (option, name, str(value))]
        options += [word for name, value in (environment or {}).items() for word in ("-x", f"{name}={value}")]
        # Called by its full path, mpirun gives the other hosts its own prefix.
        options += ["--allow-run-as-root", "--hostfile", hostfile or self.hostfile, "-n", ranks]
        return [shutil.which("mpirun"), *options, *command]

    def mpirun_command(self, ranks, command, **settings):
        """The same on node1, from here."""
        return self.command(self.names[0], self.mpirun_words(ranks, command, **settings))

    def mpirun(self, ranks, command, limit=60, **settings):
        """Runs `command` on so many ranks and returns its subprocess.CompletedProcess. After `limit` seconds all that
        runs on the hosts is ended and subprocess.TimeoutExpired raised, with what was printed."""
        return self.run_limited(self.mpirun_command(ranks, command, **settings), limit, subprocess.PIPE)

    def run_limited(self, arguments, limit, output):
        with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except BaseException as error:
                self.sweep()
                process.kill()
                out, err = process.communicate()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise subprocess.TimeoutExpired(arguments, limit, out, err) from None
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


class Cluster(Hosts, contextlib.AbstractContextManager):
    """Hosts node1 ... nodeN that live as long as this object (a context manager). rate: tc's, as "1gbit", of each
    host's cable, both ways; delay: as "0.1ms", of what each host sends, for which the kernel has to have netem."""

    def __init__(self, hosts, slots=2, rate=None, delay=None):
        check_available()
        clusters_up()
        made = Path(tempfile.mkdtemp(prefix="." + PREFIX))  # renamed, and so seen by others, once it is locked
        self._lock = open(made / "lock", "w")  # held while the owner lives, however it ends
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._holders, directory = [], made.rename(made.with_name(made.name[1:]))
        self.directory = directory
        try:
            names = [f"node{i + 1}" for i in range(hosts)]
            self._write_files(names, slots)
            switch, _ = self._start("unshare", "--net", "sh", "-c", "echo $$; exec sleep infinity")
            inits = {name: self._start("unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child",
                                       "sh", "-c", INIT, "init", str(directory), name, f"{NETWORK}.{i}") for i, name in enumerate(names, 1)}
            (directory / "state.json").write_text(json.dumps({"owner": os.getpid(), "switch": switch, "hosts": inits}))
            super().__init__(directory)
            self._connect(rate, delay)
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    def close(self):
        for holder in reversed(self._holders):
            # A host's holder ends after its process 1, and that after all others: nothing is left when it has ended.
            if is_child(holder.init, holder.pid):
                os.kill(holder.init, signal.SIGKILL)
            else:
                holder.kill()
            holder.communicate()
        self._holders = []
        shutil.rmtree(self.directory, ignore_errors=True)
        self._lock.close()

    def _write_files(self, names, slots):
        files = self.directory
        for key in ("host_key", "user_key"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lockstep test", "-f", str(files / key))
        host_key = (files / "host_key.pub").read_text()
        numbered = list(enumerate(names, 1))
        (files / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{NETWORK}.{i} {name}\n" for i, name in numbered))
        (files / "hostfile").write_text(f"# {files.name}\n" + "".join(f"{name} slots={slots}\n" for name in names))
        (files / "known_hosts").write_text("".join(f"{name} {host_key}" for name in names))
        (files / "sshd_config").write_text(
            f"HostKey {files}/host_key\nAuthorizedKeysFile {files}/user_key.pub\nStrictModes no\nUsePAM no\nUseDNS no\nPidFile none\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\n")
        (files / "ssh_config").write_text(
            f"IdentityFile {files}/user_key\nIdentitiesOnly yes\nUserKnownHostsFile {files}/known_hosts\nStrictHostKeyChecking yes\n"
            "BatchMode yes\nConnectTimeout 60\nLogLevel ERROR\n")

    def _start(self, *command):
        """Starts what holds a namespace, and returns the process in it, when that says it is ready, and the holder."""
        with open(self.directory / "log", "a") as log:
            holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                      start_new_session=True, preexec_fn=prepare_holder)
        holder.init = None
        self._holders.append(holder)
        answer = holder.stdout.readline()
        if not answer:
            raise ClusterError(f"{command} failed: {(self.directory / 'log').read_text().strip()}")
        holder.init = int(answer)
        return holder.init, holder.pid

    def _connect(self, rate, delay):
        in_network(self.switch, "ip", "link", "add", "bridge", "type", "bridge")
        in_network(self.switch, "ip", "link", "set", "bridge", "up")
        for holder, host in zip(self._holders[1:], self.names):
            port = self._port(host)
            in_network(self.switch, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(self._pid(host)))
            in_network(self.switch, "ip", "link", "set", port, "master", "bridge", "up")
            holder.stdin.write("go\n")
            holder.stdin.flush()
            attach, parent = ("tc", "qdisc", "add", "dev", "eth0"), ("root",)
            if delay:
                try:
                    in_network(self._pid(host), *attach, "root", "handle", "1:", "netem", "delay", delay, "limit", "100000")
                except ClusterError as error:
                    raise Unavailable(f"this kernel has no netem, which a delay needs: {error}") from error
                parent = ("parent", "1:1")
            if rate:
                bucket = ["tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
                in_network(self._pid(host), *attach, *parent, *bucket)
                in_network(self.switch, "tc", "qdisc", "add", "dev", port, "root", *bucket)
        deadline = time.monotonic() + 120
        while not all(listens(self._pid(host)) for host in self.names):
            if time.monotonic() > deadline:
                raise ClusterError(f"no ssh server on some of {self.names}: {(self.directory / 'log').read_text().strip()}")
            time.sleep(0.01)


def listens(pid):
    """Whether port 22 (hexadecimal 16) is listened at (state 0A) in the process's network."""
    rows = [row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(":0016") and row[3] == "0A" for row in rows)


def is_up(directory):
    """Its owner lives: it holds the lock, whatever became of its process id."""
    try:
        with open(directory / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError as error:
        return isinstance(error, BlockingIOError)


def clusters_up():
    """Their directories. Those that a killed owner left are removed."""
    found = sorted(Path(tempfile.gettempdir()).glob(PREFIX + "*"))
    for directory in found:
        if not is_up(directory):
            shutil.rmtree(directory, ignore_errors=True)
    return [directory for directory in found if directory.exists()]


def running():
    """The cluster that a command means."""
    name = os.environ.get("LOCKSTEP_CLUSTER")
    found = [d for d in clusters_up() if (d / "state.json").exists() and name in (None, d.name)]
    if len(found) == 1:
        return Hosts(found[0])
    if found:
        raise ClusterError(f"set LOCKSTEP_CLUSTER to one of {' '.join(d.name for d in found)}")
    raise ClusterError(f"the cluster {name} is not up" if name else "no cluster is up")


def own(options):
    """What `up` leaves behind: the cluster's owner, which says the hostfile when all is ready."""
    ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with Cluster(options.hosts, options.slots, options.rate, options.delay) as cluster:
        print(cluster.hostfile.read_text(), end="", flush=True)
        for stream in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        signal.sigwait(ends)


def up():
    owner = subprocess.Popen([sys.executable, __file__, "own", *sys.argv[2:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    hostfile = owner.stdout.read()
    print(hostfile, end="")
    return 0 if hostfile else owner.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    verbs = parser.add_subparsers(dest="verb", required=True, help=argparse.SUPPRESS)
    for verb in ("up", "own"):
        start = verbs.add_parser(verb)
        start.add_argument("hosts", type=int)
        start.add_argument("--slots", type=int, default=2, help="ranks per host in the hostfile (2)")
        start.add_argument("--rate", help="of each host's cable, as 1gbit")
        start.add_argument("--delay", help="of what each host sends, as 0.1ms; needs netem")
    verbs.add_parser("down")
    ranks = verbs.add_parser("mpirun")
    ranks.add_argument("--limit", type=float, default=600, help="seconds after which all is ended (600)")
    ranks.add_argument("ranks", type=int)
    for verb in ("exec", "link-down", "link-up", "loss", "kill"):
        verbs.add_parser(verb).add_argument("host")
    verbs.choices["loss"].add_argument("percent", type=float)
    for verb in ("exec", "mpirun"):
        verbs.choices[verb].add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    check_root()
    if options.verb in ("up", "own"):
        return up() if options.verb == "up" else own(options)
    cluster = running()
    if options.verb == "down":
        os.kill(cluster.owner, signal.SIGTERM)
        while is_up(cluster.directory):
            time.sleep(0.01)
        return 0
    if options.verb == "exec":
        os.execvp("nsenter", cluster.command(options.host, options.command))
    if options.verb == "mpirun":
        try:
            return cluster.run_limited(cluster.mpirun_command(options.ranks, options.command), options.limit, None).returncode
        except subprocess.TimeoutExpired:
            raise ClusterError(f"not over after {options.limit:g} s: all that ran on the hosts was ended") from None
    if options.verb == "loss":
        return cluster.loss(options.host, options.percent)
    if options.verb == "kill":
        return cluster.kill(options.host)
    return cluster.link(options.host, options.verb.removeprefix("link-"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ClusterError as error:
        print(f"hosts.py: {error}", file=sys.stderr)
        sys.exit(error.status)
