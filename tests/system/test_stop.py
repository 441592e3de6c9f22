"""Runs that are asked for a checkpoint, or to stop: by signals, by a clock, and gone on with afterwards."""

import os
import re
import signal
import subprocess
import time

import support
from support import checkpoints, is_pending, is_stopped, metrics, processes_with, program, ranks

STOPPED = 75
MLP = ["--model", "mlp", "--limit-train", 640, "--limit-eval", 100, "--global-batch", 64, "--threads", 1, "--loaders", 0, "--log-every", 1,
       "--checkpoint-every", 0, "--quiet"]  # while mpirun waits to kill, it reads no output, and who writes much would stand still
LONG = [*MLP, "--epochs", 100000, "--eval-every", 0, "--schedule", "constant"]


class StopTest(support.SystemTest):
    def begin(self, size, *arguments, steps=5, environment=None):
        """A run that has done some steps: its process and its output."""
        output = self.scratch / f"run{len(list(self.scratch.iterdir()))}"
        process = self.start(ranks(size, program("train_mnist", *arguments, "--output", output)), environment)
        self.wait_for(process, lambda: self.written(output) >= steps)
        return process, output

    def alone(self, *arguments, steps=5, preexec=None, stdout=subprocess.PIPE):
        """The same of one rank that no launcher started."""
        output = self.scratch / f"run{len(list(self.scratch.iterdir()))}"
        process = subprocess.Popen(program("train_mnist", *arguments, "--output", output), stdin=subprocess.DEVNULL, stdout=stdout,
                                   stderr=subprocess.PIPE, text=True, cwd=self.scratch, preexec_fn=preexec, start_new_session=True,
                                   env=support.clean_environment(OMP_NUM_THREADS="1", OMPI_MCA_plm="isolated"))
        self.wait_for(process, lambda: self.written(output) >= steps)
        return process, output

    def written(self, output):
        """How many lines of metrics there are; to read what they say, again and again, would take longer than the steps do."""
        try:
            return (output / "metrics.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def rank_processes(self, output):
        found = {}
        for process in processes_with(str(output)):
            try:
                if os.path.basename(os.readlink(f"/proc/{process}/exe")) == "train_mnist":
                    found[support.rank_of(process)] = process
            except OSError:
                pass  # it has ended meanwhile
        return found

    def mpirun(self, output):
        return support.launcher_of(str(output))

    def log(self, output):
        return (output / "logs" / "rank-0000.log").read_text()

    def expect_stopped(self, result, output):
        """It ended in good order, and its newest checkpoint holds what it has done."""
        self.expect_no_process()
        steps = metrics(output)
        saved = self.state(checkpoints(output)[-1])["metadata"]
        self.assertEqual(saved["step"], steps[-1][0], result)
        self.assertIn(f"checkpoint of step {saved['step']}, stopping", self.log(output))


class Signals(StopTest):
    def test_one_rank_is_enough(self):
        for number, victim in ((signal.SIGTERM, 1), (signal.SIGINT, 0), (signal.SIGUSR2, 2)):
            process, output = self.begin(3, *LONG)
            os.kill(self.rank_processes(output)[victim], number)
            result = self.finish(process)
            self.assertEqual(result.status, STOPPED, result)
            self.assertIn("a signal to stop: checkpoint", self.log(output))
            self.expect_stopped(result, output)

    def test_mpirun_passes_it_on(self):
        process, output = self.begin(2, *LONG)
        os.kill(self.mpirun(output), signal.SIGUSR2 if support.open_mpi() else signal.SIGTERM)  # Hydra would die of USR2
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)

    def test_usr1_writes_a_checkpoint_and_goes_on(self):
        process, output = self.begin(2, *LONG)
        self.assertEqual(checkpoints(output), [])
        os.kill(self.mpirun(output), signal.SIGUSR1)  # passes it to both ranks, which answer it once
        self.wait_for(process, lambda: "a signal for a checkpoint: checkpoint of step" in self.log(output))
        done = self.written(output)
        self.wait_for(process, lambda: self.written(output) > done + 5)
        os.kill(self.rank_processes(output)[1], signal.SIGTERM)
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)
        self.assertEqual(len(checkpoints(output)), 2)

    def test_a_second_signal_ends_at_once(self):
        # Rank 1 never comes to the end of its step, so the others cannot stop in good order.
        environment = support.clean_environment(LOCKSTEP_FAULT="step.gradients:sleep=600:rank=1:at=6")
        process, output = self.begin(2, *LONG, environment=environment)
        victim = self.rank_processes(output)[1]
        os.kill(victim, signal.SIGTERM)
        self.wait_for(process, lambda: not is_pending(victim, signal.SIGTERM))
        time.sleep(1.2)  # sooner it would be taken for the same one
        os.kill(victim, signal.SIGTERM)
        result = self.finish(process, support.SOON)
        self.assertNotIn(result.status, (0, STOPPED), result)
        self.expect_no_process()

    def test_a_limit_of_processor_time(self):
        """SIGXCPU at the soft limit: there is time for a checkpoint until the hard one."""
        output = self.scratch / "limited"
        result = self.run_command(["bash", "-c", 'ulimit -S -t 3; exec "$@"', "bash", *program("train_mnist", *LONG, "--output", output)])
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)

    def test_a_hangup_stops_unless_it_was_ignored(self):
        process, output = self.begin(2, *LONG)
        os.kill(self.rank_processes(output)[1], signal.SIGHUP)
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)
        process, output = self.alone(*LONG, preexec=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # nohup
        process.send_signal(signal.SIGHUP)
        done = self.written(output)
        self.wait_for(process, lambda: self.written(output) > done + 5)
        process.terminate()
        self.assertEqual(self.finish(process).status, STOPPED)

    def test_a_parents_mask_makes_nobody_deaf(self):
        every = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
        process, output = self.alone(*LONG, preexec=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, every))
        process.terminate()
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)


class LauncherKills(StopTest):
    def test_mpirun_sends_term_before_it_kills(self):
        self.need_open_mpi()
        environment = support.clean_environment(OMPI_MCA_odls_base_sigkill_timeout="5")
        process, output = self.begin(2, *LONG, environment=environment)
        os.kill(self.mpirun(output), signal.SIGTERM)
        result = self.finish(process)
        self.assertNotEqual(result.status, 0)
        self.expect_stopped(result, output)


class FullPipe(StopTest):
    """What the program prints is read by nobody: it trains on, and stops when it is asked to."""

    LOUD = [*(a for a in LONG if a != "--quiet")]

    def expect_stop(self, process, output, victim):
        # Far more lines than pipes and queues hold.
        self.wait_for(process, lambda: "the console accepts no text" in self.log(output))
        done = self.written(output)
        self.wait_for(process, lambda: self.written(output) > done + 2000)
        os.kill(victim(), signal.SIGTERM)

    def test_of_one_rank(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        process, output = self.alone(*self.LOUD, stdout=writer)
        os.close(writer)
        self.expect_stop(process, output, lambda: process.pid)
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)
        log = self.log(output)
        self.assertRegex(log, r"the console did not accept \d+ lines, which are only in this file")
        for step in range(1, metrics(output)[-1][0]):
            self.assertIn(f"  step {step}/", log)

    def test_of_two_ranks(self):
        # A launcher that does not read, as mpirun when its own reader does not: mpirun is stopped.
        process, output = self.begin(2, *self.LOUD)
        launcher = self.mpirun(output)
        os.kill(launcher, signal.SIGSTOP)
        victims = self.rank_processes(output)
        self.expect_stop(process, output, lambda: victims[1])
        self.wait_for(process, lambda: "a signal to stop: checkpoint of step" in self.log(output))
        os.kill(launcher, signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)


class TimeLimit(StopTest):
    def test_the_run_stops_before_it(self):
        output = self.scratch / "run"
        # The margin begins a few seconds after the start, and lasts for as long as a machine may need that is busy.
        limit = ["--time-limit", "60m", "--time-margin", "3595s"]
        result = self.run_command(ranks(2, program("train_mnist", *LONG, *limit, "--output", output)))
        self.assertEqual(result.status, STOPPED, result)
        self.assertRegex(self.log(output), r"--time-limit 60m is \d+ s away: checkpoint of step")
        self.expect_stopped(result, output)

    def test_slurms_end_of_the_job_is_the_default(self):
        environment = support.clean_environment(SLURM_JOB_END_TIME=str(int(time.time()) + 30))
        output = self.scratch / "run"
        result = self.run_command(ranks(2, program("train_mnist", *LONG, "--time-margin", "24s", "--output", output)), environment=environment)
        self.assertEqual(result.status, STOPPED, result)
        self.expect_stopped(result, output)

    def test_one_that_is_over(self):
        output = self.scratch / "run"
        result = self.run_command(ranks(2, program("train_mnist", *MLP, "--time-limit", "0:00", "--trace", self.scratch / "trace.json", "--output", output)))
        self.assertEqual(result.status, STOPPED, result)
        self.assertIn("--time-limit 0:00 is over: checkpoint of step 1, stopping", self.log(output))
        self.assertIn("trace: the run ended within its first 3 updates", self.log(output))
        self.assertTrue(self.log(output).rstrip().endswith("stopped after a checkpoint; continue with --resume auto"), self.log(output))

    def test_with_a_signal_at_the_same_time(self):
        # The limit is over in the first step, and the signal comes in it.
        environment = support.clean_environment(LOCKSTEP_FAULT="step.begin:stop:at=1")
        output = self.scratch / "run"
        process = self.start(ranks(2, program("train_mnist", *LONG, "--time-limit", "0s", "--output", output)), environment)
        self.wait_for(process, lambda: sum(map(is_stopped, self.rank_processes(output).values())) == 2)
        for rank in self.rank_processes(output).values():
            os.kill(rank, signal.SIGUSR1)
            os.kill(rank, signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual(result.status, STOPPED, result)
        self.assertIn("--time-limit 0s is over, a signal for a checkpoint: checkpoint of step 1, stopping", self.log(output))
        self.expect_stopped(result, output)
        self.assertEqual(len(checkpoints(output)), 1)


class GoesOn(StopTest):
    """Stopped anywhere and resumed, again and again, until it is done: as one that nobody stopped."""

    def undisturbed(self, arguments):
        output = self.scratch / "undisturbed"
        self.succeed(ranks(2, program("train_mnist", *arguments, "--output", output)))
        return metrics(output), metrics(output, "eval"), self.state(checkpoints(output)[-1])["tensors"]

    def means(self, output):
        """Of epochs, in the log and in the metrics."""
        return re.findall(r"epoch \d+: training loss .*", self.log(output)), metrics(output, "epoch")

    def test_stopped_at_every_step(self):
        arguments = [*MLP, "--limit-train", 320, "--epochs", 2, "--max-steps", 7, "--checkpoint-every-steps", 7]
        expected = self.undisturbed(arguments)
        self.assertEqual([step for step, _ in expected[1]], [5, 7])
        output = self.scratch / "run"
        # A limit that is over before the first step: each start does one, and the last evaluation is one more start.
        command = ranks(2, program("train_mnist", *arguments, "--time-limit", "0s", "--output", output, "--resume", "auto"))
        statuses = []
        while not statuses or (statuses[-1] == STOPPED and len(statuses) < 20):
            statuses.append(self.run_command(command).status)
        self.assertEqual(statuses[-1], 0, statuses)
        self.assertIn(len(statuses), range(7, 13), "every start came forward")
        self.assertEqual((metrics(output), metrics(output, "eval"), self.state(checkpoints(output)[-1])["tensors"]), expected)
        self.assertEqual([step for step, _ in metrics(output, "epoch")], [5, 7])
        self.assertEqual(self.means(output), self.means(self.scratch / "undisturbed"), "though every step was of another start")


if __name__ == "__main__":
    support.main()
