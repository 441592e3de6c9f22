"""Ranks that stand still are named while they do, and end the job if they stay; ranks that disagree are named at start."""

import os
import re

import support
from support import clean_environment, metrics, program, ranks

STALLED = 76
MLP = ["--model", "mlp", "--limit-train", 640, "--limit-eval", 100, "--global-batch", 64, "--threads", 1, "--loaders", 0, "--log-every", 1,
       "--checkpoint-every", 0]
HOST = os.uname().nodename


# Long enough for ranks that wait for a core on a busy machine.
STALL = ["--stall-timeout", 3]
ABORT = ["--abort-timeout", 10]


class StandsStill(support.SystemTest):
    def begin(self, size, fault, *arguments):
        output = self.scratch / "run"
        environment = clean_environment(LOCKSTEP_FAULT=fault)
        return self.start(ranks(size, program("train_mnist", *MLP, "--max-steps", 20, "--output", output, *arguments)), environment), output

    def stall(self, size, fault, *arguments, status=STALLED):
        process, output = self.begin(size, fault, *arguments)
        result = self.finish(process)
        self.assertEqual(result.status, status, result)
        self.expect_no_process()
        return result, output

    def logged(self, output):
        return "".join(log.read_text() for log in sorted((output / "logs").glob("rank-*.log")))

    def expect_ended(self, result, rank, step):
        """The watchdog ended the job because of this rank, and named it alone, but for ranks that moved again."""
        ended = re.findall(r"rank (\d+) on host (\S+) has not moved for \d+ s: the watchdog ends the job with status 76", result.output)
        self.assertEqual(ended, [(str(rank), HOST)], result)
        self.assertEqual(support.standing(result.output), {rank: step}, result)

    def test_a_sleeping_rank_is_named_and_goes_on(self):
        go = self.scratch / "go"
        process, output = self.begin(3, f"step.begin:sleep=600:rank=1:at=7:until={go}", *STALL, "--abort-timeout", 0)
        log = output / "logs" / "rank-0001.log"
        self.wait_for(process, lambda: support.standing(self.logged(output)).get(1) == 7 and "--- end of the stack" in log.read_text())
        go.touch()
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.output, rf"rank 1 on host {HOST} has not moved for \d+ s: at step 7")
        self.assertEqual(support.standing(result.output), {}, result)
        self.assertRegex(result.output, rf"rank 1 on host {HOST} moves again after \d+ s")
        # Between two looks for the file the process sleeps; the watchdog may see it during one.
        self.assertRegex(result.output, r"its process \d+ (sleeps \(state S|runs \(state R)")
        self.assertRegex(log.read_text(), r"fault_point|nanosleep", "it names where the rank is")
        self.assertEqual(len(metrics(output)), 20)

    def test_a_sleeping_rank_ends_the_job(self):
        for rank in (0, 2):  # rank 0's own watchdog speaks of it
            result, _ = self.stall(3, f"step.gradients:sleep=600:rank={rank}:at=4", *STALL, *ABORT)
            self.expect_ended(result, rank, 4)

    def test_one_rank_alone_ends_too(self):
        result, _ = self.stall(1, "step.gradients:sleep=600:rank=0:at=4", *STALL, *ABORT)
        self.expect_ended(result, 0, 4)

    def test_a_stopped_process_is_told_as_such(self):
        for rank in (0, 1):  # of which the other speaks
            result, _ = self.stall(2, f"step.begin:stop:rank={rank}:at=5", *STALL, *ABORT)
            self.expect_ended(result, rank, 5)
            self.assertRegex(result.output, r"its process \d+ is stopped \(state T[^)]*\); `kill -CONT \d+` on that host continues it")

    def test_of_a_last_checkpoint_only_its_writer_is_named(self):  # the limits are ten times as long in that phase
        result, _ = self.stall(2, "checkpoint.write:stop:rank=0:at=20", "--checkpoint-every-steps", 20, "--stall-timeout", 1, "--abort-timeout", 3)
        self.expect_ended(result, 0, 20)

    def test_nothing_is_said_of_a_run_that_moves(self):
        result, _ = self.stall(2, "step.begin:sleep=1:rank=1:at=3", "--stall-timeout", 20, status=0)
        self.assertNotIn("has not moved", result.output)


class Disagrees(support.SystemTest):
    """One rank of two is started with something else."""

    def differ(self, second, *fragments, first=None):
        first = first or program("train_mnist", *MLP, "--max-steps", 2, "--output", self.scratch / "run")
        command = [*support.mpirun(2), *support.by_rank(first, second)]
        result = self.run_command(command, environment=support.launch_environment())
        self.assertNotEqual(result.status, 0, result)
        for fragment in fragments:
            self.assertIn(fragment, result.output)
        self.expect_no_process()

    def test_in_an_option(self):
        self.differ(program("train_mnist", *MLP, "--max-steps", 2, "--lr", 0.3, "--output", self.scratch / "run"), "the options", "rank 1", '"lr"')

    def test_in_the_program(self):
        self.differ(program("train_toy", "--dataset", "digits", "--max-steps", 2, "--output", self.scratch / "run"), "the program", "rank 1", "train_toy")

    def test_in_the_build(self):
        other = self.scratch / "train_mnist"
        source = bytearray((support.BIN / "train_mnist").read_bytes())
        note = source.find(b"GNU\0", source.find(b"\x03\0\0\0GNU\0"))  # the build id follows
        source[note + 6] ^= 0xFF
        other.write_bytes(source)
        other.chmod(0o755)
        self.differ([str(other), *map(str, MLP), "--max-steps", "2", "--output", str(self.scratch / "run")], "the build of the program", "rank 1")


if __name__ == "__main__":
    support.main()
