"""scripts/setup_ssh.sh on hosts with homes, host keys and ssh servers of their own, at another port than ssh's."""

from pathlib import Path

import hosts
import paths
from paths import SCRIPTS
from test_cluster import ClusterTest

PORT = 12345
SETUP = SCRIPTS / "setup_ssh.sh"


class SetupSsh(ClusterTest):
    def setUp(self):
        super().setUp()
        self.hosts = self.cluster(3)
        self.first_key = self.scratch / "first_key"
        hosts.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "first", "-f", str(self.first_key))
        for host in self.hosts.names:
            self.home(host).mkdir()
            self.home(host).chmod(0o700)
            self.authorize_first(host)
            self.succeed(self.hosts.command(host, ["mount", "--bind", self.home(host), "/root"], "/"))
            self.serve(host)

    def home(self, host):
        return self.scratch / f"home-{host}"

    def authorize_first(self, host):
        folder = self.home(host) / ".ssh"
        folder.mkdir(0o700, exist_ok=True)
        line = self.first_key.with_suffix(".pub").read_text().rstrip("\n")  # as some editors leave a file
        (folder / "authorized_keys").write_text(line)
        (folder / "known_hosts").write_text("other.example.org " + line)

    def serve(self, host):
        """An ssh server with a new host key."""
        key, config, pid = self.scratch / f"key-{host}", self.scratch / f"sshd-{host}", Path("/run/server")
        stop = self.hosts.command(host, ["sh", "-c", f"! test -e {pid} || kill $(cat {pid}); while ss -tln | grep -q :{PORT}; do sleep 0.05; done"], "/")
        self.succeed(stop)
        for old in (key, key.with_suffix(".pub")):
            old.unlink(missing_ok=True)
        hosts.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        config.write_text(f"Port {PORT}\nHostKey {key}\nPidFile {pid}\nUsePAM no\nUseDNS no\nPasswordAuthentication no\n"
                          "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\n")
        self.succeed(self.hosts.command(host, [hosts.shutil.which("sshd"), "-f", config], "/"))
        self.succeed(self.hosts.command(host, ["sh", "-c", f"until ss -tln | grep -q :{PORT}; do sleep 0.05; done"], "/"))

    def call(self, *words, names=("node1", "node2", "node3")):
        return self.run_command(self.hosts.command("node1", ["env", "HOME=/root", SETUP, "-p", PORT, *words, *names], self.scratch))

    def set_up(self, *words):
        result = self.call("-i", self.first_key, *words)
        self.assertEqual(result.status, 0, result)
        self.assertIn("all 12 logins work", result.stdout)
        return result

    def homes(self):
        return {host: self.files(self.home(host)) for host in self.hosts.names}

    def test_every_pair_can_log_in_and_a_job_starts(self):
        before = self.homes()
        dry = self.call("-i", self.first_key, "--dry-run")
        self.assertEqual(dry.status, 0, dry)
        self.assertIn("node2: would be given the key of this host", dry.stdout)
        self.assertEqual(self.homes(), before)

        said = self.set_up().stdout
        self.assertIn("this host: made the key /root/.ssh/id_ed25519\n", said)
        self.assertIn("node3: made the key /root/.ssh/id_ed25519\n", said)
        self.assertIn("name: node2 is 10.77.0.2\n", said)
        self.assertIn("give mpirun: --mca plm_rsh_args '-p 12345'", said)
        first = self.first_key.with_suffix(".pub").read_text().rstrip("\n")
        for host in self.hosts.names:
            folder = self.home(host) / ".ssh"
            self.assertIn(first, (folder / "authorized_keys").read_text().splitlines(), host)
            self.assertIn("other.example.org " + first, (folder / "known_hosts").read_text().splitlines(), host)
        keys = {self.files(self.home(host))[".ssh/id_ed25519"] for host in self.hosts.names}
        self.assertEqual(len(keys), 3)  # no private key has left its host

        before = self.homes()
        again = self.set_up().stdout
        for word in ("made", "noted", "accepts", "given"):
            self.assertNotIn(f" {word} ", again)
        self.assertEqual(self.homes(), before)

        # node2 is where mpirun is called, which has called nothing before.
        settings = ["env", "HOME=/root", *(f"{name}={value}" for name, value in hosts.MACHINE.items()), "mpirun", "--allow-run-as-root"]
        job = self.run_command(self.hosts.command("node2", [*settings, "--mca", "plm_rsh_args", f"-p {PORT}", "-H", "node1:8,node3:8", "uname", "-n"],
                                                  self.scratch))
        self.assertEqual((job.status, sorted(job.stdout.split())), (0, ["node1"] * 8 + ["node3"] * 8), job)

    def test_a_changed_host_key_is_named_and_replaced_on_request(self):
        self.set_up()
        self.serve("node2")
        before = self.homes()
        result = self.call()
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.stderr, r"this host: /root/\.ssh/known_hosts:\d+ has another key than the host shows \(ssh-ed25519\)\. If node2 was installed anew")
        self.assertEqual(self.homes(), before)
        dry = self.call("--replace", "--dry-run")
        self.assertIn("this host: would replace the host key of node2, ", dry.stdout)
        self.assertEqual(self.homes(), before)
        mended = self.set_up("--replace")
        for where in ("this host", "node2", "node3"):
            self.assertIn(f"{where}: replaced the host key of node2, /root/.ssh/known_hosts:", mended.stdout)
        self.set_up()

    def test_a_key_that_is_refused(self):
        (self.home("node3") / ".ssh" / "authorized_keys").write_text("")
        result = self.call("-i", self.first_key)
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.stderr, r"node3 refuses .*/first_key: .*Permission denied \(publickey\)\.; expected -i with a key that it accepts")

    def test_no_server(self):
        self.hosts.link("node3", "down")
        result = self.call("-i", self.first_key)
        self.assertEqual(result.status, 1, result)
        self.assertIn("node3: no ssh server answers on port 12345 of 10.77.0.3", result.stderr)

    def test_names_and_addresses(self):
        result = self.call(names=["node1", "node9"])
        self.assertEqual(result.status, 1, result)
        self.assertIn("node9: the name does not resolve here; expected a line 'ADDRESS node9' in /etc/hosts", result.stderr)

        other = self.scratch / "hosts"
        other.write_text("127.0.0.1 localhost\n127.0.1.1 node2\n10.77.0.3 node1\n10.77.0.3 node3\n")
        self.succeed(self.hosts.command("node2", ["mount", "--bind", other, "/etc/hosts"], "/"))
        self.succeed(self.hosts.command("node3", ["hostname", "node1"], "/"))
        result = self.call("-i", self.first_key)
        self.assertEqual(result.status, 1, result)
        self.assertIn("node2: the name node1 is 10.77.0.3 there, and 10.77.0.1 here", result.stderr)
        self.assertNotIn("node2: the name node2", result.stderr)  # Debian's habit
        self.assertIn("node3 and node1 both call themselves 'node1'", result.stderr)

    def test_a_wrong_command_line(self):
        for words, says in ((["--many"], "unknown option '--many'"), (["node1:8"], "'node1:8' is no name of a host"), (["node1"], "given twice: node1"),
                            (["-p", "ssh"], "the port is 'ssh'"), (["--hostfile", "none"], "the hostfile 'none' cannot be read")):
            with self.subTest(says):
                result = self.call(*words)
                self.assertEqual((result.status, result.stderr.count(says)), (2, 1), result)


if __name__ == "__main__":
    paths.main()
