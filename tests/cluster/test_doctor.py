"""Set-ups that are broken in one way each: the doctor names that, and nothing else; and more than sixteen healthy ones, of which it says
nothing red."""

import json
import shutil
import subprocess
import sys

import hosts
from doctor_setups import BROKEN, Setup, support
from healthy_setups import HEALTHY
from support import program
from test_cluster import RANK_SETTINGS, ClusterTest

# What these two measure depends on what else the machine does.
MEASURED = ("links", "memory-bandwidth")


class Doctor(ClusterTest):
    def found(self, row, shared, number, *options):
        """What the doctor says of a row's set-up, which has hosts of its own unless it leaves the shared ones as they are."""
        setup = Setup(self, number, row.rate, shared if row.shares else None)
        row.make(setup)
        findings = setup.doctor(*options)
        if not row.shares:
            setup.cluster.close()
        return findings

    def test_names_what_is_broken_and_nothing_else(self):
        shared = self.cluster(2, slots=1)
        for row in BROKEN:
            with self.subTest(row.make.__name__):
                findings = self.found(row, shared, 2, "--no-start")
                told = [f for f in findings if f["level"] != "green" and (f["check"] == row.check or f["check"] not in MEASURED)]
                self.assertTrue(told, findings)
                for finding in told:
                    self.assertEqual((finding["check"], finding["level"]), (row.check, row.level), told)
                    self.assertTrue(finding["mend"], finding)
                self.assertTrue(any(row.says in f["what"] and row.where in f["where"] for f in told), told)

    def test_says_nothing_red_on_healthy_hosts(self):
        shared = self.cluster(2, slots=1)
        for row in HEALTHY:
            with self.subTest(row.make.__name__, hosts=row.number, rate=row.rate):
                findings = self.found(row, shared, row.number, *([] if row.start else ["--no-start"]))
                self.assertEqual([f for f in findings if f["level"] == "red"], [])
                levels = {check: {f["level"] for f in findings if f["check"] == check} for check in row.green}
                self.assertEqual(levels, {check: {"green"} for check in row.green}, findings)
                self.assertEqual("start" in [f["check"] for f in findings], row.start, findings)

    def within_a_job(self, cluster, options=(), environment=()):
        """What rank 0 prints; its status is mpirun's."""
        words = cluster.mpirun_words(4, [*options, *program("lockstep", "doctor", "--threads", 1, "--json")], environment=RANK_SETTINGS)
        done = cluster.run_limited(cluster.command("node1", ["env", *environment, *words], "/"), support.LIMIT, subprocess.PIPE)
        self.assertTrue(done.stdout.startswith("{"), done)
        report = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(report["ranks"], 4)
        return report["findings"]

    def test_within_a_job(self):
        data = self.scratch / "data"
        data.mkdir()
        (data / "images").write_bytes(bytes(5000))
        cluster = self.cluster(2, slots=2)
        findings = self.within_a_job(cluster, ["-x", f"LOCKSTEP_DATA_DIR={data}"])
        self.assertEqual([f for f in findings if f["level"] == "red"], [])
        self.assertLessEqual({"ports", "links", "interfaces", "mpi", "clocks", "data"}, {f["check"] for f in findings})
        # mpirun takes the variable to the ranks of its own host alone.
        red = [f for f in self.within_a_job(cluster, environment=[f"LOCKSTEP_DATA_DIR={data}"]) if f["level"] == "red"]
        self.assertEqual([f["check"] for f in red], ["data"])
        self.assertIn("mpirun -x LOCKSTEP_DATA_DIR", red[0]["what"])


if __name__ == "__main__":
    try:
        hosts.check_available()
        if shutil.which("faketime") is None:
            raise hosts.Unavailable("faketime is not installed (as root, scripts/setup.sh --tests installs it)")
    except hosts.Unavailable as reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    support.main()
