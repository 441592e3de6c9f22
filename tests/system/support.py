"""Runs Lockstep's programs as users do, always with a time limit, and looks at what they leave behind."""

import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from skips import main  # noqa: F401  # the scripts' own

SOURCE = Path(os.environ["LOCKSTEP_SOURCE"])
BIN = Path(os.environ["LOCKSTEP_BIN"])
RUN = SOURCE / "tests" / "mpi" / "run.sh"  # mpirun with what a test machine needs

LAUNCHERS = ("mpirun", "orterun", "prterun", "prte", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra")  # files of mpirun

# Seconds. Whatever is waited for takes one or a few on a quiet machine; these tell a hang from a machine that is busy, or that runs under a
# sanitizer, and so a limit that is met shows nothing about speed. SOON is less than a watchdog takes to end a job (--abort-timeout).
LIMIT, SOON = 400, 120


class Result:
    def __init__(self, status, stdout, stderr, seconds):
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds
        self.output = stdout + stderr

    def __str__(self):
        return f"status {self.status} after {self.seconds:.1f} s\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def clean_environment(**extra):
    """What the caller has set must not decide what is seen here, but for variables that the machine needs."""
    needed = os.environ.get("LOCKSTEP_TEST_VARIABLES", "").split()
    keep = {k: v for k, v in os.environ.items() if k in needed or not re.match(r"(OMP_|OMPI_|OPENBLAS_|LOCKSTEP_|SLURM_|PMI)", k)}
    keep.update(LOCKSTEP_NODE_ENV="/dev/null", **extra)
    return keep


def launch_environment(**extra):
    """For a bare mpirun: as root, on few cores, looking for nothing outside this machine."""
    return clean_environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_plm="isolated",
                             OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_base_warn_component_unused="0", **extra)


@functools.cache
def open_mpi():
    """The first number of the version of PATH's mpirun if it is Open MPI's, else 0: then it is MPICH's."""
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Open MPI\)? (\d+)", version)
    return int(found[1]) if found else 0


def mpirun(number):
    """For `number` ranks that float over this machine's cores, also if these are fewer."""
    return ["mpirun", *(["--oversubscribe", "--bind-to", "none"] if open_mpi() else []), "-n", str(number)]


def launcher_of(text):
    """The process of mpirun with `text` in its command line."""
    return next(p for p in processes_with(text) if os.path.basename(os.readlink(f"/proc/{p}/exe")) in LAUNCHERS)


def rank_of(process):
    """None: no launcher started it."""
    variables = dict(e.split("=", 1) for e in Path(f"/proc/{process}/environ").read_text().split("\0") if "=" in e)
    rank = variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))
    return None if rank is None else int(rank)


@functools.cache
def emulated():
    """Whether the programs are of another processor than Python, so that QEMU runs them. Bytes 18 and 19 of an ELF file name the processor."""
    own, other = (Path(path).read_bytes()[18:20] for path in (sys.executable, BIN / "lockstep"))
    return own != other


def program(name, *arguments):
    return [str(BIN / name), *map(str, arguments)]


def ranks(number, command):
    return [str(RUN), str(number), *command]


def by_rank(first, second):
    """A command of which rank 0 runs the first and another rank the second: mpirun's own form `FIRST : SECOND` crashes Open MPI 5.0.7's."""
    words = [" ".join(shlex.quote(str(word)) for word in command) for command in (first, second)]
    return ["sh", "-c", f"case ${{PMIX_RANK-$PMI_RANK}} in 0) exec {words[0]};; *) exec {words[1]};; esac"]


def processes_that(condition):
    """Ids of live processes, this one apart, for whose folder in /proc something is so."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
                if condition(entry):
                    found.append(int(entry.name))
    return found


def processes_with(text):
    """Ids of live processes that have `text` in their command line, this one apart."""
    return processes_that(lambda process: text.encode() in (process / "cmdline").read_bytes())


def processes_below(folder):
    """Those that have a test's folder in their command line, or that work below it: a command may name its files relative to it."""
    working = processes_that(lambda process: os.readlink(process / "cwd").startswith(str(folder)))
    return sorted({*processes_with(str(folder)), *working})


def described(processes):
    """{id: command line} of those that live."""
    lines = {}
    for process in processes:
        with contextlib.suppress(OSError):
            lines[process] = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return lines


def is_stopped(process):
    """Whether each of its threads has stopped: a signal reaches them one after the other."""
    try:
        return all((thread / "stat").read_text().rpartition(")")[2].split()[0] in "Tt" for thread in Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return False  # it has ended meanwhile


def is_pending(process, number):
    """Whether a signal that was sent to it has not been delivered."""
    status = Path(f"/proc/{process}/status").read_text()
    return any(int(mask, 16) >> (number - 1) & 1 for mask in re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)", status, re.MULTILINE))


def metrics(output, split="train"):
    """(step, the loss as it is written) of every line that is whole: one may be on its way into the file."""
    return losses(Path(output) / "metrics.jsonl", split)


def losses(file, split="train"):
    lines = file.read_text().split("\n")[:-1]
    return [(json.loads(line)["step"], re.search(r'"loss":([^,]*)', line).group(1))
            for line in lines if json.loads(line)["split"] == split]


def standing(output):
    """{rank: step} of the ranks that a watchdog named last, from what a job printed. One that waits long for a core of a busy machine is named,
    too, and moves again."""
    found = {}
    for rank, said, step in re.findall(r"rank (\d+) on host \S+ (has not moved for \d+ s: (?:at step (\d+)|before)|moves again)", output):
        if said == "moves again":
            found.pop(int(rank), None)
        else:
            found[int(rank)] = int(step or 0)
    return found


def checkpoints(output):
    return sorted((Path(output) / "checkpoints").glob("step-*.h5"))


class SystemTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="lockstep-system-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.addCleanup(self.end_left)

    def need_open_mpi(self, most=99):
        if not 0 < open_mpi() <= most:
            self.skipTest(f"what is tried here is a matter of Open MPI{'' if most == 99 else f' {most}'}, and PATH has another mpirun")

    def skip_emulated_launcher(self):
        """Where lockstep run and launch refuse to start anything."""
        if emulated():
            self.skipTest("QEMU has no PR_SET_CHILD_SUBREAPER, without which lockstep run and launch could leave processes behind")

    def start(self, command, environment=None, preexec=None):
        """A process in a group of its own, which ends with the test at the latest; `preexec` runs in it first."""
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                   cwd=self.scratch, env=environment or clean_environment(), start_new_session=True, preexec_fn=preexec)
        self.addCleanup(self.end_process, process)
        return process

    def end_process(self, process):
        """Kills its group and what else of this test runs, unless it has ended."""
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            self.end_left()
            process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()

    def end_left(self):
        for left in processes_below(self.scratch):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                os.kill(left, signal.SIGKILL)

    def finish(self, process, limit=LIMIT):
        began = time.monotonic()
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            self.end_left()
            stdout, stderr = process.communicate()
            self.fail(f"not over after {limit} s: {process.args}\n{stdout}\n{stderr}")
        if "PR_SET_CHILD_SUBREAPER" in (stderr or ""):
            self.skip_emulated_launcher()
        return Result(process.returncode, stdout or "", stderr or "", time.monotonic() - began)

    def run_command(self, command, limit=LIMIT, environment=None):
        return self.finish(self.start(command, environment), limit)

    def wait_for(self, process, condition, limit=LIMIT):
        """Until something is so, while the process runs; returns what the condition gives."""
        deadline = time.monotonic() + limit
        while not (found := condition()):
            if process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"it never came to it:\n{self.finish(process, 1)}")
            time.sleep(0.01)
        return found

    def wait_for_stopped(self, process, text):
        """The id of a process with `text` on its command line that has stopped, as a fault asks."""
        return self.wait_for(process, lambda: next((p for p in processes_with(text) if is_stopped(p)), None))

    def succeed(self, command, limit=LIMIT, environment=None):
        result = self.run_command(command, limit, environment)
        self.assertEqual(result.status, 0, f"{command}\n{result}")
        return result

    def fail_with(self, command, *fragments, status=None, limit=SOON):
        """It ends soon on all ranks, non-zero, and says each fragment once."""
        result = self.run_command(command, limit)
        self.assertNotEqual(result.status, 0, f"{command}\n{result}")
        if status is not None:
            self.assertEqual(result.status, status, result)
        for fragment in fragments:
            self.assertEqual(result.output.count(fragment), 1, f"'{fragment}' once in\n{command}\n{result}")
        self.expect_no_process()
        return result

    def expect_no_process(self):
        """Nothing that this test has started is left; the launcher reaps its ranks a moment after it has said so."""
        self.expect_none(lambda: processes_below(self.scratch))

    def expect_gone(self, text):
        self.expect_none(lambda: processes_with(text))

    def expect_none(self, processes):
        deadline = time.monotonic() + SOON
        while processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(described(processes()), {}, "processes that are left, expected none")

    def state(self, path):
        return json.loads(self.succeed(program("system_state", path)).stdout)

    def files(self, folder):
        """All files below, with their bytes, but the logs, to which every start adds, and the lock, which it takes."""
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*"))
                if p.is_file() and p.name != ".lock" and "logs" not in p.relative_to(folder).parts}
