"""The batch script for Slurm, with stand-ins for what it calls."""

import os
import signal

import support


class BatchScript(support.SystemTest):
    """scripts/slurm.sbatch with stand-ins for Slurm's commands: requests that come before the ranks listen."""

    def setUp(self):
        super().setUp()
        self.tools = self.scratch / "tools"
        self.tools.mkdir()
        self.write_tool("srun", f"touch {self.scratch}/started\nexec sleep 1000")
        self.write_tool("squeue", "true")
        self.write_tool("scontrol", f'echo "$@" >>{self.scratch}/scontrol')

    def write_tool(self, name, text):
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def submit(self):
        environment = support.clean_environment(PATH=f"{self.tools}:{os.environ['PATH']}", SLURM_SUBMIT_DIR=str(self.scratch), SLURM_JOB_ID="7")
        return self.start(["bash", support.SOURCE / "scripts" / "slurm.sbatch"], environment)

    def expect_queued_again(self, result, reason):
        self.assertIn(f"slurm.sbatch: {reason}; queued again to go on", result.stdout)
        self.assertEqual((self.scratch / "scontrol").read_text(), "requeue 7\n")

    def end_by(self, number):
        script = self.submit()
        self.wait_for(script, (self.scratch / "started").exists)
        os.kill(script.pid, number)
        return self.finish(script)

    def test_ranks_that_a_request_ends_are_queued_again(self):
        for number, status in ((signal.SIGUSR2, 140), (signal.SIGUSR1, 138)):
            result = self.end_by(number)
            self.assertEqual(result.status, status, result)
            self.expect_queued_again(result, "ended by a request, without a checkpoint")
            for name in ("started", "scontrol"):
                (self.scratch / name).unlink()

    def test_the_end_of_the_job_is_its_end(self):
        result = self.end_by(signal.SIGTERM)
        self.assertEqual(result.status, 140, result)
        self.assertFalse((self.scratch / "scontrol").exists())

    def test_a_request_before_the_start(self):
        self.write_tool("squeue", f"touch {self.scratch}/asking\nwhile [ ! -e {self.scratch}/go ]; do sleep 0.05; done")
        script = self.submit()
        self.wait_for(script, (self.scratch / "asking").exists)
        os.kill(script.pid, signal.SIGUSR2)
        (self.scratch / "go").touch()
        result = self.finish(script)
        self.assertEqual(result.status, 75, result)
        self.expect_queued_again(result, "asked to stop before its start")
        self.assertFalse((self.scratch / "started").exists())


if __name__ == "__main__":
    support.main()
