"""Containers that run a job over ssh at a chosen port: the manifest of a Kubernetes MPIJob, whose commands run on hosts that are set up as its pods
would be; and images that are built from both recipes, of which two each run a job."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hosts
import paths
from hosts import MACHINE
from paths import SOURCE, TOY, PathsTest
import support
from support import program

RECIPES = SOURCE / "containers"
PORT = 12345


def make_keys(folder):
    """A folder for ~/.ssh, as `start` tells to make it."""
    folder.mkdir()
    hosts.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "job", "-f", str(folder / "id_ed25519"))
    shutil.copy(folder / "id_ed25519.pub", folder / "authorized_keys")
    folder.chmod(0o700)


class ContainersTest(PathsTest):
    def wait_for_server(self, host, server, port):
        look = self.hosts.command(host, ["sh", "-c", f"ss -tln | grep -q :{port}"], "/")
        self.wait_for(server, lambda: self.run_command(look).status == 0)

    def end(self, servers):
        self.hosts.sweep()
        for server in servers:
            self.finish(server)


class MpiJob(ContainersTest):
    HOSTS = 3

    def make_pod(self, host, name, prefix, home):
        """A host with the name of a pod, and with what the image and the volumes have at their places."""
        script = ('set -e; hostname "$1"; mount -t tmpfs tmpfs /opt; mkdir /opt/lockstep; mount --bind "$2" /opt/lockstep; mount --bind "$3" /root; '
                  'mount -t tmpfs tmpfs /mnt; mkdir /mnt/output /mnt/data; mount --bind "$4" /mnt/output')
        self.succeed(self.hosts.command(host, ["sh", "-c", script, "sh", name, prefix, home, self.scratch / "volume"], "/"))

    def test_the_manifests_commands_train(self):
        self.need_open_mpi(4)  # the operator tells its list of hosts to this version alone
        import yaml
        job = yaml.safe_load((RECIPES / "mpijob.yaml").read_text())
        self.assertEqual((job["apiVersion"], job["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
        spec = job["spec"]
        pods = {kind: replica["template"]["spec"]["containers"][0] for kind, replica in spec["mpiReplicaSpecs"].items()}
        workers = [f"lockstep-worker-{i}" for i in range(spec["mpiReplicaSpecs"]["Worker"]["replicas"])]
        self.assertEqual(spec["sshAuthMountPath"], "/root/.ssh")

        # An installation, the operator's secret, the names of pods, and the output's volume.
        prefix = self.scratch / "prefix"
        (prefix / "bin").mkdir(parents=True)
        for name in ("train_toy", "lockstep"):
            (prefix / "bin" / name).symlink_to(program(name)[0])
        shutil.copytree(RECIPES, prefix / "share" / "lockstep" / "containers")
        shutil.copy(SOURCE / "scripts" / "train.sh", prefix / "share" / "lockstep")
        home = self.scratch / "home"
        home.mkdir()
        make_keys(home / ".ssh")
        shutil.copy(RECIPES / "ssh_config", home / ".ssh" / "config")  # in the image it lies in /etc/ssh
        (self.scratch / "volume").mkdir()
        named = [f"{hosts.NETWORK}.{i} {name} {name}.lockstep.default.svc\n" for i, name in enumerate(["lockstep-launcher", *workers], 1)]
        (self.hosts.directory / "hosts").write_text("127.0.0.1 localhost\n" + "".join(named))
        for host, name in zip(self.hosts.names, ["lockstep-launcher", *workers]):
            self.make_pod(host, name, prefix, home)
        hostfile = self.write("hostfile", "".join(f"{name}.lockstep.default.svc slots={spec['slotsPerWorker']}\n" for name in workers))

        worker = pods["Worker"]
        port = worker["readinessProbe"]["tcpSocket"]["port"]
        variables = {entry["name"]: entry["value"] for entry in worker["env"]}
        servers = []
        for host in self.hosts.names[1:]:
            servers.append(self.start(self.hosts.command(host, ["env", "HOME=/root", *(f"{k}={v}" for k, v in variables.items()), *worker["command"]], "/")))
            self.wait_for_server(host, servers[-1], port)

        launcher = pods["Launcher"]
        self.assertEqual(int(launcher["args"][launcher["args"].index("-n") + 1]), spec["slotsPerWorker"] * len(workers))
        of_operator = {"OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": hostfile,
                       "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10", "HOME": "/root"}
        result = self.on("node1", [*launcher["command"], *launcher["args"]], of_operator)
        options = launcher["args"][launcher["args"].index("/opt/lockstep/bin/train_toy") + 1:]
        at = options.index("--output")
        del options[at:at + 2]
        self.end(servers)
        self.expect_finished(result, self.scratch / "volume" / "run", options)


class Images(ContainersTest):
    """Built by buildah from a base that debootstrap makes, without a network but Debian's."""

    ENTER = """set -e
root=$1
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
touch "$root/etc/hosts"
mount --bind /etc/hosts "$root/etc/hosts"
mount -t tmpfs tmpfs "$root/run"
"""

    @classmethod
    def call(cls, *words, **options):
        done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout.strip()

    @classmethod
    def buildah(cls, *words):
        return cls.call("buildah", "--root", cls.store / "root", "--runroot", cls.store / "run", *words)

    @classmethod
    def setUpClass(cls):
        cls.store = Path(hosts.tempfile.mkdtemp(prefix="lockstep-images-"))
        cls.addClassCleanup(cls.remove_store)
        base = cls.store / "base"
        cls.call("debootstrap", "--variant=minbase", "bookworm", base)
        (base / "etc" / "resolv.conf").unlink(missing_ok=True)  # the machine's, which buildah puts in its place
        cls.prefix = cls.store / "prefix"
        cls.call("cmake", "--install", support.BIN.parent, "--strip", "--prefix", cls.prefix)
        cls.buildah("from", "--name", "base", "scratch")
        cls.buildah("add", "base", base, "/")
        cls.buildah("commit", "base", "lockstep-base")
        cls.buildah("bud", "--isolation", "chroot", "--build-arg", "BASE=localhost/lockstep-base", "--build-arg", f"SSH_PORT={PORT}", "-t", "lockstep",
                    "-f", cls.prefix / "share" / "lockstep" / "containers" / "Dockerfile", cls.prefix)
        cls.roots = {}
        # Mounted before there are hosts, which take their mounts over when they are made.
        for image, name in (("lockstep", "docker1"), ("lockstep", "docker2"), ("lockstep-base", "apptainer1")):
            cls.buildah("from", "--name", name, f"localhost/{image}")
            cls.roots[name] = Path(cls.buildah("mount", name))
        cls.config = json.loads(cls.buildah("inspect", "docker1"))["OCIv1"]["config"]
        cls.apptainer = cls.build_definition(cls.roots["apptainer1"])
        super().setUpClass()

    @classmethod
    def remove_store(cls):
        for name in cls.roots if hasattr(cls, "roots") else ():
            cls.buildah("umount", name)
        subprocess.run(["buildah", "--root", cls.store / "root", "--runroot", cls.store / "run", "rm", "--all"], capture_output=True)
        shutil.rmtree(cls.store, ignore_errors=True)

    @classmethod
    def build_definition(cls, root):
        """What Apptainer, which Debian 12 has not, does with the definition; returns its sections."""
        sections, name = {}, None
        for line in (cls.prefix / "share" / "lockstep" / "containers" / "lockstep.def").read_text().splitlines():
            if line.startswith("%"):
                name = line[1:].strip()
            elif name is not None:
                sections.setdefault(name, []).append(line)
        for line in filter(str.strip, sections["files"]):
            source, target = line.split()
            (root / target.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(cls.prefix / source, root / target.lstrip("/"))
        shutil.copy(os.path.realpath("/etc/resolv.conf"), root / "etc" / "resolv.conf")
        cls.call("unshare", "--mount", "sh", "-c", 'mount --rbind /dev "$0/dev"; mount --rbind /proc "$0/proc"; exec chroot "$0" /bin/sh -e -c "$1"',
                 root, "\n".join(sections["post"]))
        for name, file in (("environment", "environment"), ("runscript", "runscript")):
            (root / file).write_text("#!/bin/sh\n. /environment\n" * (name == "runscript") + "\n".join(sections[name]) + "\n")
        (root / "runscript").chmod(0o755)
        return sections

    def enter(self, host, root):
        self.succeed(self.hosts.command(host, ["sh", "-c", self.ENTER, "sh", root], "/"))

    def in_container(self, host, root, words, variables):
        return self.hosts.command(host, ["chroot", root, "env", "-i", *(f"{k}={v}" for k, v in variables.items()), *words], "/")

    def machine(self):
        return {k: v for k, v in MACHINE.items() if "_MCA_" in k and "tmpdir" not in k}

    def test_two_containers_of_the_dockerfile_run_a_job(self):
        variables = dict(entry.split("=", 1) for entry in self.config["Env"]) | {"HOME": "/root"}
        self.assertEqual(variables["LOCKSTEP_SSH_PORT"], str(PORT))
        start = [*self.config["Entrypoint"], *self.config["Cmd"]]
        keys = self.scratch / "ssh"
        make_keys(keys)
        for host, name in (("node1", "docker1"), ("node2", "docker2")):
            self.enter(host, self.roots[name])
        # Without keys it says what to do, and ends.
        bare = self.run_command(self.in_container("node2", self.roots["docker2"], start, variables))
        self.assertEqual(bare.status, 1, bare)
        self.assertIn("start: node2: there is no /root/.ssh/authorized_keys", bare.stderr)
        for name in ("docker1", "docker2"):
            shutil.copytree(keys, self.roots[name] / "root" / ".ssh")
        server = self.start(self.in_container("node2", self.roots["docker2"], start, variables))
        self.wait_for_server("node2", server, PORT)

        job = [*self.config["Entrypoint"], "mpirun", "-n", "16", "-H", "node1:8,node2:8", "--bind-to", "none", "--mca", "plm_rsh_args", f"-p {PORT}",
               "--mca", "oob_tcp_if_include", "eth0", "-x", "LOCKSTEP_INTERFACE=eth0", "train.sh", "train_toy", *TOY, "--output", "/mnt/run"]
        done = self.run_command(self.in_container("node1", self.roots["docker1"], job, variables | self.machine()))
        self.end([server])
        self.expect_finished(done, self.roots["docker1"] / "mnt" / "run")
        size = sum(f.stat().st_size for f in self.roots["docker2"].rglob("*") if f.is_file() and not f.is_symlink()
                   and not {"proc", "sys", "dev", "run"} & {f.relative_to(self.roots["docker2"]).parts[0]})
        print(f"the image's files: {size / 2**20:.0f} MiB", file=sys.stderr)
        self.assertLess(size, 600 * 2**20)

    def test_two_containers_of_the_definition_run_a_job(self):
        """Read-only, as Apptainer starts them, by a user who is not root, whose home all containers share."""
        root = self.roots["apptainer1"]
        home = self.scratch / "home"
        home.mkdir()
        self.call("chroot", root, "useradd", "--uid", "4711", "--home-dir", "/mnt", "--password", "*", "--shell", "/bin/sh", "trainer")
        make_keys(home / ".ssh")
        self.call("chown", "-R", "4711:4711", home)
        variables = {"HOME": "/mnt", "USER": "trainer", "PATH": "/usr/bin:/bin", "LOCKSTEP_SSH_PORT": PORT}
        as_user = ["/usr/bin/setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
        mounts = 'set -e; mount --bind "$2" "$1/mnt"; mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"'
        servers = []
        for host in self.hosts.names:
            self.enter(host, root)
            self.succeed(self.hosts.command(host, ["sh", "-c", mounts, "sh", root, home], "/"))
            servers.append(self.start(self.in_container(host, root, [*as_user, "/runscript"], variables)))
            self.wait_for_server(host, servers[-1], PORT)
        self.assertEqual(sorted(p.name for p in (home / ".lockstep-ssh").iterdir()), ["node1", "node2"])  # a host key each
        job = ["/bin/sh", "-c", '. /environment; exec "$@"', "sh", "mpirun", "-n", "16", "-H", "node1:8,node2:8", "--bind-to", "none",
               "--mca", "plm_rsh_args", f"-p {PORT}", "train.sh", "train_toy", *TOY, "--output", "/mnt/run"]
        done = self.run_command(self.in_container("node1", root, [*as_user, *job], variables | self.machine()))
        self.end(servers)
        self.expect_finished(done, home / "run")


if __name__ == "__main__":
    how = "scripts/setup.sh --containers"
    paths.main(*([("buildah", how), ("debootstrap", how)] if "Images" in sys.argv else []))
