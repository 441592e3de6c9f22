"""Set-ups in which nothing is wrong, each in its own way: changes of doctor_setups.Setup, with the checks that have to be green."""

import json
import shutil
import time
from dataclasses import dataclass
from typing import Callable

import doctor_setups
import hosts
import support


def as_it_is(setup):
    pass


def docker0_of_its_own_address(setup):
    for host, address in (("node1", "172.17.0.1/16"), ("node2", "172.18.0.1/16")):
        setup.on(host, "ip", "link", "add", "docker0", "type", "bridge")
        setup.on(host, "ip", "address", "add", address, "dev", "docker0")
        setup.on(host, "ip", "link", "set", "docker0", "up")


def docker0_that_is_not_used(setup):
    doctor_setups.docker_bridge(setup)
    setup.options += ["--interface", "eth0"]


def two_cards(setup):
    setup.cluster.second_network()
    setup.options += ["--interface", "eth0,eth1"]


def the_second_card(setup):
    setup.cluster.second_network()
    setup.options += ["--interface", f"{hosts.SECOND_NETWORK}.0/24"]


def an_address_for_the_network(setup):
    setup.before = ["env", f"LOCKSTEP_INTERFACE={hosts.NETWORK}.2"]


def a_firewall_that_is_open_at_the_ports(setup):
    setup.cluster.only_ports(doctor_setups.PORTS)


def a_firewall_against_others(setup):
    rules = "table inet filter {\nchain input {\ntype filter hook input priority 0; policy accept;\ntcp dport 25 drop\n}\n}\n"
    for host in setup.cluster.names:
        setup.on(host, "sh", "-c", f"nft -f - <<'END'\n{rules}END")


def hosts_alone(setup):
    setup.options = []


def ranks_that_share_the_cores(setup):
    setup.hosts = ["-H", "node1:2,node2:2"]
    setup.without("--threads")


def a_hostfile(setup):
    setup.hosts = ["--hostfile", setup.cluster.hostfile]


def a_rank_table(setup):
    servers = [{"server_id": host, "device": [{"device_id": "0", "device_ip": f"{hosts.NETWORK}.{i + 1}", "rank_id": str(i)}]}
               for i, host in enumerate(setup.cluster.names)]
    table = setup.scratch / "table.json"
    table.write_text(json.dumps({"version": "1.0", "server_count": str(len(servers)), "server_list": servers, "status": "completed"}))
    setup.hosts = ["--hostfile", table]


def a_job_of_slurm(setup):
    job = ["env", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_TASKS_PER_NODE=1(x2)"]
    setup.hosts = ["-H", setup.on("node1", *job, setup.lockstep, "hosts", "--to", "host-list").strip()]


def names_with_a_domain(setup):
    full = [f"{host}.cluster.example" for host in setup.cluster.names]
    lines = [f"{hosts.NETWORK}.{i} {name} {name.partition('.')[0]}\n" for i, name in enumerate(full, 1)]
    (setup.cluster.directory / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
    setup.know(*full)
    setup.hosts = ["-H", ",".join(f"{name}:1" for name in full)]


def addresses_for_names(setup):
    addresses = [f"{hosts.NETWORK}.{i}" for i in (1, 2)]
    setup.know(*addresses)
    setup.hosts = ["-H", ",".join(f"{address}:1" for address in addresses)]


def another_ssh_port(setup):
    for host in setup.cluster.names:
        setup.on(host, shutil.which("sshd"), "-f", setup.cluster.directory / "sshd_config", "-p", 2222)
        deadline = time.monotonic() + support.SOON
        while ":08AE 00000000:0000 0A" not in setup.on(host, "cat", "/proc/net/tcp"):  # listens at 2222
            setup.test.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        setup.know(f"[{host}]:2222")
    setup.options += ["-p", 2222]


def data_that_the_environment_names(setup):
    setup.without("--data-dir")
    setup.before = ["env", f"LOCKSTEP_DATA_DIR={setup.data}"]


def an_output_that_is_to_be_made(setup):
    setup.without("--output")
    setup.options += ["--output", setup.output / "new" / "run"]


def limits_that_are_wide(setup):
    setup.before = ["sh", "-c", 'ulimit -n 1024 && ulimit -s 16384 && ulimit -f 33554432 && exec "$@"', "sh"]


def a_gigabyte_of_shared_memory(setup):
    for host in setup.cluster.names:
        setup.on(host, "mount", "-o", "remount,size=1g", "/dev/shm")


def a_shell_that_talks(setup):
    """Its start files print a line before what is asked for."""
    setup.wrap("node2", "echo welcome to $(hostname)\nexec")


@dataclass
class Healthy:
    make: Callable
    green: tuple = ()  # the checks that this set-up is about; of all others no red is told
    number: int = 2
    rate: str | None = None
    start: bool = False  # also by the doctor's own mpirun, which takes some seconds
    # What is special is not of the hosts, so they can be those of other rows. Not with `start`: the ports of an mpirun stay taken for a minute.
    shares: bool = False


HEALTHY = [
    Healthy(as_it_is, ("login", "ports"), number=1, start=True),
    Healthy(as_it_is, ("login", "names", "interfaces", "ports", "mpi", "build", "data", "host-names"), start=True),
    Healthy(as_it_is, ("login", "names", "interfaces", "ports"), number=3),
    Healthy(as_it_is, ("ports",), rate="800mbit"),
    Healthy(docker0_of_its_own_address, ("interfaces", "ports")),
    Healthy(docker0_that_is_not_used, ("interfaces", "ports"), start=True),
    Healthy(two_cards, ("interfaces", "ports")),
    Healthy(the_second_card, ("interfaces", "ports")),
    Healthy(an_address_for_the_network, ("interfaces", "ports"), start=True),
    Healthy(a_firewall_that_is_open_at_the_ports, ("ports",), start=True),
    Healthy(a_firewall_against_others, ("ports",)),
    Healthy(hosts_alone, ("login", "ports", "cores"), shares=True),
    Healthy(ranks_that_share_the_cores, ("login", "shared-memory"), shares=True),
    Healthy(a_hostfile, ("login",), shares=True),
    Healthy(a_rank_table, ("login",), shares=True),
    Healthy(a_job_of_slurm, ("login",), shares=True),
    Healthy(names_with_a_domain, ("login", "names")),
    Healthy(addresses_for_names, ("login", "names")),
    Healthy(another_ssh_port, ("login",)),
    Healthy(data_that_the_environment_names, ("data",), shares=True),
    Healthy(an_output_that_is_to_be_made, shares=True),
    Healthy(limits_that_are_wide, ("limits",), shares=True),
    Healthy(a_gigabyte_of_shared_memory, ("shared-memory",)),
    Healthy(a_shell_that_talks, ("login",)),
]
