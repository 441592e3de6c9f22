"""Runs Lockstep's programs as users do, always with a time limit, and looks at what they leave behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(os.environ["LOCKSTEP_SOURCE"])
BIN = Path(os.environ["LOCKSTEP_BIN"])
RUN = SOURCE / "tests" / "mpi" / "run.sh"  # mpirun with what a test machine needs


class Result:
    def __init__(self, status, stdout, stderr, seconds):
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds
        self.output = stdout + stderr

    def __str__(self):
        return f"status {self.status} after {self.seconds:.1f} s\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def clean_environment(**extra):
    """What the caller has set must not decide what is seen here."""
    keep = {k: v for k, v in os.environ.items() if not re.match(r"(OMP_|OMPI_|OPENBLAS_|LOCKSTEP_|SLURM_|PMI)", k)}
    keep.update(LOCKSTEP_NODE_ENV="/dev/null", **extra)
    return keep


def launch_environment(**extra):
    """For a bare mpirun: as root, on few cores, looking for nothing outside this machine."""
    return clean_environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_plm="isolated",
                             OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_base_warn_component_unused="0", **extra)


def program(name, *arguments):
    return [str(BIN / name), *map(str, arguments)]


def ranks(number, command):
    return [str(RUN), str(number), *command]


def processes_with(text):
    """Ids of live processes that have `text` in their command line, this one apart."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass  # it has ended meanwhile
    return found


def metrics(output, split="train"):
    """(step, the loss as it is written) of every line."""
    lines = (Path(output) / "metrics.jsonl").read_text().splitlines()
    return [(json.loads(line)["step"], re.search(r'"loss":([^,]*)', line).group(1))
            for line in lines if json.loads(line)["split"] == split]


def checkpoints(output):
    return sorted((Path(output) / "checkpoints").glob("step-*.h5"))


class SystemTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="lockstep-system-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def start(self, command, environment=None):
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                cwd=self.scratch, env=environment or clean_environment(), start_new_session=True)

    def finish(self, process, limit):
        began = time.monotonic()
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            for left in processes_with(str(self.scratch)):
                os.kill(left, signal.SIGKILL)
            stdout, stderr = process.communicate()
            self.fail(f"not over after {limit} s: {process.args}\n{stdout}\n{stderr}")
        return Result(process.returncode, stdout or "", stderr or "", time.monotonic() - began)

    def run_command(self, command, limit=120, environment=None):
        return self.finish(self.start(command, environment), limit)

    def succeed(self, command, limit=120, environment=None):
        result = self.run_command(command, limit, environment)
        self.assertEqual(result.status, 0, f"{command}\n{result}")
        return result

    def fail_with(self, command, *fragments, status=None, limit=20):
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
        deadline = time.monotonic() + 5  # the launcher reaps its ranks a moment after it has said so
        while processes_with(str(self.scratch)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(processes_with(str(self.scratch)), [])

    def state(self, path):
        return json.loads(self.succeed(program("system_state", path)).stdout)

    def files(self, folder):
        """All files below, with their bytes, but the logs, to which every start adds, and the lock, which it takes."""
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*"))
                if p.is_file() and p.name != ".lock" and "logs" not in p.relative_to(folder).parts}
