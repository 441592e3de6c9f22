"""Runs that train beside a simulation: killed, gone back to a checkpoint, stopped by a signal; the simulations go on where the run says."""

import os
import re
import signal
from pathlib import Path

import support
from support import checkpoints, clean_environment, metrics, processes_with, program, ranks

IN_SITU = ["--epochs", 0, "--max-steps", 12, "--steps-per-epoch", 5, "--schedule", "constant", "--reservoir", 40, "--threads", 1,
           "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 2, "--keep", 0]


class Simulations(support.SystemTest):
    def command(self, output, *options, size=2):
        return ranks(size, program("in_situ", *IN_SITU, *options, "--output", self.scratch / output))

    def result(self, output):
        return metrics(self.scratch / output), metrics(self.scratch / output, "epoch"), self.state(checkpoints(self.scratch / output)[-1])["tensors"]

    def test_killed_and_resumed(self):
        self.succeed(self.command("whole"))
        expected = self.result("whole")
        self.assertEqual([step for step, _ in expected[0]], list(range(1, 13)))
        self.assertIn("reservoir/rank-0001/fields/state", expected[2])
        process = self.start(self.command("killed"), clean_environment(LOCKSTEP_FAULT="step.begin:kill:at=9"))
        self.assertNotEqual(self.finish(process).status, 0)
        self.expect_no_process()
        step = self.state(checkpoints(self.scratch / "killed")[-1])["metadata"]["step"]
        self.assertLess(step, 9)
        result = self.succeed(self.command("killed", "--resume", "auto"))
        trained = 32 + 16 * (step - 1)  # of each rank: a batch of new samples, then halves
        self.assertIn(f"samples that are trained, by rank: {trained}, {trained}", result.output)
        self.assertEqual(self.result("killed"), expected)

    def test_gone_back_to_a_checkpoint(self):
        self.succeed(self.command("whole"))
        process = self.start(self.command("damaged"), clean_environment(LOCKSTEP_FAULT=f"weights.flip:corrupt:rank=1:at=7:once={self.scratch}/once"))
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertIn("rolled back to update 6", result.output)
        self.assertEqual(self.result("damaged"), self.result("whole"))

    def test_stopped_by_a_signal(self):
        process = self.start(self.command("stopped", "--max-steps", 1000000, "--keep", 1))
        self.wait_for(process, lambda: (self.scratch / "stopped" / "metrics.jsonl").exists() and len(metrics(self.scratch / "stopped")) > 3)
        os.kill(next(p for p in processes_with(str(self.scratch)) if Path(f"/proc/{p}/comm").read_text() == "in_situ\n"), signal.SIGTERM)
        result = self.finish(process)
        self.assertIn("stopped after a checkpoint; continue with --resume auto", result.output)
        self.expect_no_process()
        step = int(re.search(r"checkpoint of step (\d+), stopping", result.output)[1])
        self.succeed(self.command("stopped", "--max-steps", step + 2, "--resume", "auto"))
        self.succeed(self.command("whole", "--max-steps", step + 2))
        self.assertEqual(self.result("stopped")[2], self.result("whole")[2])


if __name__ == "__main__":
    support.main()
