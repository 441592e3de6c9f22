"""Slurm over two hosts: srun and salloc start one job of sixteen ranks; sbatch stops before its time limit, is queued again, and goes on."""

import os
import subprocess

import hosts
import paths
from hosts import MACHINE
from paths import SOURCE, TOY, TRAIN, PathsTest
import support
from support import checkpoints, metrics, program

CONF = """ClusterName=lockstep
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
MpiDefault=none
SlurmdParameters=config_overrides
OverTimeLimit=10
NodeName=node[1-2] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm(PathsTest):
    @classmethod
    def setUpClass(cls):
        cls.daemons = []
        cls.addClassCleanup(lambda: [daemon.wait() for daemon in cls.daemons])  # called when the hosts are gone
        super().setUpClass()
        cls.folder = cls.kept / "slurm"
        (cls.folder / "state").mkdir(parents=True)
        cls.kept.chmod(0o755)  # munged wants the folders above its files readable
        (cls.folder / "slurm.conf").write_text(CONF.format(folder=cls.folder))
        (cls.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # unused, but loaded
        (cls.folder / "mpi.conf").write_text("PMIxCliTmpDirBase=/run\n")  # the hosts share /tmp
        key = cls.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        for host in cls.hosts.names:
            cls.daemon(host, "munged", "--foreground", "--force", f"--key-file={key}", "--socket=/run/munge.socket", "--pid-file=/run/munged.pid",
                       f"--log-file={cls.folder}/munged-{host}.log", "--seed-file=/run/munge.seed")
            cls.until(host, "test -S /run/munge.socket")
        cls.daemon("node1", "slurmctld", "-D")
        for host in cls.hosts.names:
            cls.daemon(host, "slurmd", "-D", "-N", host)
        cls.until("node1", 'test "$(sinfo -h -o %D%T)" = 2idle')

    @classmethod
    def command(cls, host, words, variables=()):
        return cls.hosts.command(host, ["env", f"SLURM_CONF={cls.folder}/slurm.conf", *variables, *words], cls.folder)

    @classmethod
    def daemon(cls, host, *words):
        with open(cls.folder / f"{words[0]}-{host}.out", "w") as log:
            cls.daemons.append(subprocess.Popen(cls.command(host, [hosts.shutil.which(words[0]), *words[1:]]), stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log, start_new_session=True))

    @classmethod
    def until(cls, host, condition, limit=support.LIMIT):
        """Waits for a condition of the shell."""
        loop = f"until {condition}; do sleep 0.1; done 2>/dev/null"
        try:
            subprocess.run(cls.command(host, ["sh", "-c", loop]), stdin=subprocess.DEVNULL, timeout=limit, check=True)
        except subprocess.TimeoutExpired:
            said = "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in sorted(cls.folder.glob("*.*o*")) if log.suffix in (".log", ".out"))
            raise AssertionError(f"{host}: after {limit} s still not: {condition}\n{said}") from None

    def tearDown(self):
        pass  # the daemons stay for the next test; the jobs have ended

    def slurm(self, *words, **variables):
        # plm: within an allocation mpirun has srun start its daemons.
        machine = {name: value for name, value in {**MACHINE, **variables}.items() if not name.endswith("_MCA_plm")}
        settings = [f"{name}={value}" for name, value in {"SLURM_CONF": self.folder / "slurm.conf", **machine}.items()]
        return self.run_command(self.hosts.command("node1", ["env", *settings, *words], self.scratch))

    def test_srun_and_salloc_train(self):
        for i, launcher in enumerate((["srun", "-N", 2, "--ntasks-per-node=8", "--mpi=pmix"],
                                      ["salloc", "-N", 2, "--ntasks-per-node=8", "mpirun", "--allow-run-as-root", "--bind-to", "none"])):
            with self.subTest(launcher[0]):
                self.output = self.scratch / f"run{i}"
                self.expect_finished(self.slurm(*launcher, TRAIN, *self.toy()))

    def test_sbatch_stops_before_its_time_limit_and_goes_on(self):
        log = self.scratch / "job.log"
        endless = [*TOY[:TOY.index("--max-steps")], "--epochs", 1000000, "--eval-every", 0, *TOY[TOY.index("--shards"):]]
        # Of a job of one minute the script's own signal, a minute before the end, would come at once.
        submitted = self.slurm("sbatch", "--parsable", "-N", 2, "--ntasks-per-node=8", "--time=1", "--signal=B:USR2@1", f"--output={log}",
                               SOURCE / "scripts" / "slurm.sbatch", *endless,
                               LOCKSTEP_PROGRAM=program("train_toy")[0], LOCKSTEP_OUTPUT=self.output)
        self.assertEqual(submitted.status, 0, submitted)
        job = submitted.stdout.strip()
        over = f"! squeue -h -j {job} | grep -q ."  # so that a job that fails is not waited for
        self.until("node1", f"grep -qs 'queued again to go on' {log} || {over}")
        first = log.read_text()
        self.assertIn("queued again to go on", first)
        self.assertEqual(first.count("16 ranks on 2 hosts"), 1, first)
        saved = self.state(checkpoints(self.output)[-1])["metadata"]["step"]
        self.assertEqual(saved, metrics(self.output)[-1][0])
        # The second start goes on from there; a request to stop has it queued once more.
        self.until("node1", f"test $(grep -c '\"split\":\"train\"' {self.output}/metrics.jsonl) -gt {saved + 3} || {over}")
        listed = self.succeed(self.command("node1", ["squeue", "-h", "-j", job]))
        self.assertIn(job, listed.stdout, f"{log.read_text()}\n{(self.folder / 'slurmctld.log').read_text()}")
        self.succeed(self.command("node1", ["scancel", "--signal=USR2", "--batch", job]))
        self.until("node1", f"test $(grep -c 'queued again to go on' {log}) = 2 || {over}")
        self.succeed(self.command("node1", ["scancel", job]))
        self.until("node1", f'test -z "$(squeue -h -j {job} -t PENDING,RUNNING,COMPLETING)"')
        text = log.read_text()
        self.assertEqual(text.count("16 ranks on 2 hosts"), 2, text)
        self.assertRegex(text, rf"Slurm's end of the job is .* away: checkpoint of step {saved}, stopping")
        self.assertRegex(text, rf"resumed \S+ at step {saved}, ")
        steps = [step for step, _ in metrics(self.output)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))


if __name__ == "__main__":
    how = "scripts/setup.sh --slurm"
    paths.main(*[(tool, how) for tool in ("munged", "slurmctld", "slurmd", "srun")])
