"""What `lockstep run` makes of how a job ends. Most jobs here are small scripts, so that each end can be had at will."""

import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import support
from support import checkpoints, is_pending, metrics, program

STOPPED, STALLED, UNTRUSTED = 75, 76, 77
TRAINING = ["--model", "mlp", "--limit-train", 640, "--limit-eval", 64, "--global-batch", 64, "--shards", 4, "--threads", 1, "--loaders", 0,
            "--epochs", 0, "--schedule", "constant", "--eval-every", 0, "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 4, "--quiet"]


def training(ranks, steps, output):
    return [*support.mpirun(ranks), *program("train_mnist", *TRAINING, "--max-steps", steps, "--output", output)]


class SupervisorTest(support.SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"

    def script(self, text, folder=None):
        """A job that runs `text` in a shell: $count is the number of this start, $out the output folder. All its files are in `folder`."""
        folder = folder or self.scratch
        path, output = folder / "job.sh", folder / "run"
        path.write_text(f"#!/bin/sh\nout={output}\nmkdir -p $out/checkpoints\necho \"$@\" >> {folder}/starts\n"
                        f"count=$(wc -l < {folder}/starts)\n{text}\n")
        path.chmod(0o755)
        return [str(path), "--output", str(output)]

    def supervised(self, command, *options):
        return program("lockstep", "run", "--backoff", 0.01, *options, "--", *command)

    def supervise(self, command, *options, limit=support.LIMIT):
        return self.run_command(self.supervised(command, *options), limit)

    def starts(self, folder=None):
        return ((folder or self.scratch) / "starts").read_text().splitlines()


class Ends(SupervisorTest):
    def test_restarts_until_done(self):
        result = self.supervise(self.script("[ $count -lt 4 ] && exit 76; exit 0"))
        self.assertEqual(result.status, 0, result)
        self.assertEqual(self.starts(), [f"--output {self.output} --resume auto"] * 4)
        self.assertEqual(result.stderr.count("exit code 76; newest checkpoint: none"), 3, result)
        log = (self.output / "logs" / "supervisor.log").read_text()
        self.assertEqual(len(re.findall("info: start ", log)), 4)

    def test_final_ends(self):
        for status in (0, 2, STOPPED, UNTRUSTED):
            (self.scratch / "starts").unlink(missing_ok=True)
            result = self.supervise(self.script(f"exit {status}"))
            self.assertEqual((result.status, len(self.starts())), (status, 1), result)

    def test_an_end_with_0_after_a_lost_host_is_a_failure(self):
        """So mpirun of Open MPI 5.0.7 ends."""
        report = "  Remote daemon: [prterun-node1-19@0,1] on node node2"
        result = self.supervise(self.script(f"[ $count -eq 1 ] && echo '{report}' >&2; exit 0"))
        self.assertEqual((result.status, len(self.starts())), (0, 2), result)
        self.assertIn("exit code 0: host node2: connection lost", result.stderr)
        (self.scratch / "starts").unlink()
        report = "mpirun noticed that process rank 1 with PID 7 on node a exited on signal 9 (Killed)."
        result = self.supervise(self.script(f"echo '{report}' >&2; exit 0"))
        self.assertEqual((result.status, len(self.starts())), (0, 1), "a job that goes on without a rank, or tries itself again")

    def test_a_program_that_is_not_there(self):
        result = self.supervise(["/no/such/program", "--output", str(self.output)])
        self.assertEqual(result.status, 127, result)
        self.assertIn("/no/such/program: No such file or directory", result.stderr)

    def test_its_log_is_a_file_of_its_own(self):
        log, precious = self.output / "logs" / "supervisor.log", self.scratch / "precious"
        log.parent.mkdir(parents=True)
        precious.write_text("keep me")
        for kind, make in (("a symbolic link", lambda: log.symlink_to(precious)), ("a named pipe", lambda: os.mkfifo(log))):
            make()
            result = self.supervise(self.script("exit 0"))
            self.assertNotEqual(result.status, 0, result)
            self.assertEqual(result.stderr.count(f"{log} is {kind}, expected a regular file or none: remove it"), 1, result)
            log.unlink()
        self.assertEqual(precious.read_text(), "keep me")
        self.assertFalse((self.scratch / "starts").exists())

    def test_gives_up_without_progress(self):
        result = self.supervise(self.script("kill -9 $$"), "--max-restarts", 2)
        self.assertEqual((result.status, len(self.starts())), (137, 3), result)
        self.assertIn("3 ends without a newer checkpoint, --max-restarts is 2", result.stderr)

    def test_gives_up_on_an_error_that_repeats(self):
        result = self.supervise(self.script("echo 'train_x: [output] no space' >&2; exit 1"))
        self.assertEqual((result.status, len(self.starts())), (1, 2), result)
        self.assertIn("failed twice alike", result.stderr)

    def test_command_lines_of_lockstep(self):
        for arguments, status, fragment in [(["--version"], 0, "lockstep (Lockstep "), (["run", "--help"], 0, "--rejoin"), ([], 2, "subcommand"),
                                            (["compare"], 2, "run1"), (["compare", "--fast", "a", "b"], 2, "--fast"),
                                            (["run", "--backoff", "x", "--", "true"], 2, "--backoff"),
                                            (["run", "mpirun", "-n", 1, "true"], 2, "lockstep run [OPTIONS] -- mpirun")]:
            result = self.run_command(program("lockstep", *arguments))
            self.assertEqual(result.status, status, result)
            self.assertIn(fragment, result.output)

    def test_a_wrong_command_line_is_not_tried_again(self):
        toy = program("train_toy", "--limit-train", 64, "--allreduce", "bogus", "--output", self.output)
        result = self.supervise(support.ranks(2, toy))
        self.assertEqual(result.status, 2, result)
        self.assertEqual(result.stderr.count("lockstep run: start "), 1, result)

    def test_a_newer_checkpoint_is_progress(self):
        result = self.supervise(self.script("touch $out/checkpoints/step-$(printf %010d $count).h5; [ $count -lt 6 ] && exit 1; exit 0"),
                                "--max-restarts", 1)
        self.assertEqual((result.status, len(self.starts())), (0, 6), result)

    def test_restart_on_stop(self):
        result = self.supervise(self.script(f"[ $count -lt 3 ] && exit {STOPPED}; exit 0"), "--restart-on-stop")
        self.assertEqual((result.status, len(self.starts())), (0, 3), result)

    def test_a_start_that_hangs(self):
        result = self.supervise(self.script("[ $count = 1 ] && sleep 1000; exit 0"), "--start-timeout", 5)
        self.assertEqual((result.status, len(self.starts())), (0, 2), result)
        self.assertIn(f"the job wrote nothing in {self.output}, and printed nothing, within 5 s", result.stderr)
        self.expect_no_process()

    def test_who_failed_is_named(self):
        self.supervise(self.script("[ $count = 1 ] || exit 0; echo 'train_x: rank 3 on host node7: [loader] record 5 is empty' >&2; exit 1"))
        self.assertIn("exit code 1: rank 3 on host node7: [loader] record 5 is empty; newest",
                      (self.output / "logs" / "supervisor.log").read_text())

    def test_what_cannot_be_supervised(self):
        for command, words in ((["mpirun", "-n", 2, "true"], "--output"), (["mpirun", "-n", 1, "a", "--output", "x", ":", "b"], "several programs"),
                               (["mpirun", "--hostfile", "/no/such", "a", "--output", "x"], "/no/such")):
            result = self.supervise(list(map(str, command)))
            self.assertEqual(result.status, 2, result)
            self.assertIn(words, result.stderr)


    def test_one_supervisor_at_a_time(self):
        first = self.start(program("lockstep", "run", "--", *self.script("trap '' USR2 TERM; touch $out/ready; exec sleep 1000")))
        self.wait_for(first, lambda: (self.output / "ready").exists())
        second = self.supervise(self.script("exit 0"))
        self.assertEqual((second.status, len(self.starts())), (1, 1), second)
        self.assertIn(f"'{self.output}' cannot be supervised, by one supervisor at a time: ", second.stderr)
        self.assertIn(f"process {first.pid} on host ", second.stderr)
        for _ in range(2):  # the job answers none in good order
            first.terminate()
            self.wait_for(first, lambda: not is_pending(first.pid, signal.SIGTERM))
        first.terminate()
        self.finish(first)
        self.assertEqual(self.supervise(self.script("exit 0")).status, 0, "what the first one leaves locks nobody out")

    def test_checkpoints_of_another_job_are_no_progress(self):
        self.output.mkdir()
        with open(self.output / ".lock", "w") as other:
            other.write("process 4711 on host elsewhere, since long ago\n")
            other.flush()
            fcntl.fcntl(other, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK, as the programs do
            result = self.supervise(self.script("touch $out/checkpoints/step-$(printf %010d $count).h5; [ $count -lt 9 ] && exit 1; exit 0"),
                                    "--max-restarts", 2)
        self.assertEqual((result.status, len(self.starts())), (1, 3), result)
        self.assertIn("is in use by process 4711 on host elsewhere", result.stderr)
        self.assertIn("3 ends without a newer checkpoint, --max-restarts is 2", result.stderr)

    def test_another_run_in_the_folder_is_left_alone(self):
        """The job's own folder was removed or moved; another run began under its path, while the job went on elsewhere."""
        mine, other = "0123456789abcdef", "fedcba9876543210"
        written = self.scratch / "written"
        begin = (f"run() {{ mkdir -p $2/checkpoints; echo '{{\"run\":\"'$1'\"}}' > $2/run.json; touch $2/checkpoints/step-$3.h5; }}\n"
                 f"[ $count = 1 ] || exit 0\nrun {mine} $out 0000000001\n"
                 f"until grep -qs 'is the folder of run {mine}$' $out/logs/supervisor.log; do sleep 0.01; done\n")
        beside, moved = f"{self.output}.{mine}", f"{self.scratch}/moved"
        for change, fragment in ((f"rm -r $out; run {mine} {beside} 0000000002", f"--output {beside} in its command"),
                                 (f"mv $out {moved}", f"--output {moved} in its command"),
                                 ("rm -r $out", "whose folder is gone")):
            job = self.script(f"{begin}{change}\nrun {other} $out 0000000009\nls -R $out > {written}; kill -9 $$")
            result = self.supervise(job, "--max-restarts", 3)
            self.assertEqual((result.status, len(self.starts())), (1, 1), result)
            self.assertIn(f"not started again: '{self.output}' is the folder of run {other} now, and this job is run {mine}, ", result.stderr)
            self.assertIn(fragment, result.stderr)
            self.assertIn("signal 9 (Killed); newest checkpoint: none", result.stderr)
            self.assertEqual(subprocess.run(["ls", "-R", self.output], capture_output=True, text=True, check=True).stdout, written.read_text())
            for folder in (self.output, beside, moved):
                shutil.rmtree(folder, ignore_errors=True)
            (self.scratch / "starts").unlink()

    def test_a_run_that_moves_before_another_takes_its_folder(self):
        """Nothing under the old path: another start there would begin anew."""
        mine = "0123456789abcdef"
        result = self.supervise(self.script(f"[ $count = 1 ] || exit 0\necho '{{\"run\":\"{mine}\"}}' > $out/run.json\n"
                                            f"until grep -qs 'is the folder of run {mine}$' $out/logs/supervisor.log; do sleep 0.01; done\n"
                                            f"mv $out {self.scratch}/moved; kill -9 $$"))
        self.assertEqual((result.status, len(self.starts())), (1, 1), result)
        self.assertIn(f"'{self.output}' is no longer its folder", result.stderr)

    def test_a_start_may_begin_another_run(self):
        """As with --resume FILE; its checkpoints are progress."""
        result = self.supervise(self.script("echo '{\"run\":\"000000000000000'$count'\"}' > $out/run.json\n"
                                            "until grep -qs \"is the folder of run 000000000000000$count$\" $out/logs/supervisor.log; do sleep 0.01; done\n"
                                            "touch $out/checkpoints/step-000000000$count.h5; [ $count -lt 3 ] && exit 1; exit 0"), "--max-restarts", 1)
        self.assertEqual((result.status, len(self.starts())), (0, 3), result)

    def test_a_folder_that_is_removed_is_held_again(self):
        result = self.supervise(self.script(f"[ -e {self.scratch}/again ] && exit 0; touch {self.scratch}/again; rm -r $out; exit 1"))
        self.assertEqual(result.status, 0, result)
        log = (self.output / "logs" / "supervisor.log").read_text()
        self.assertIn("was removed or replaced, and is supervised anew", log)
        self.assertIn("info: start 2: ", log)

    def test_options_in_a_config_file(self):
        config = self.scratch / "job.toml"
        config.write_text(f'output = "{self.output}"\nresume = "first.h5"\n')
        job = [self.script("touch $out/checkpoints/step-0000000001.h5; [ $count = 1 ] && exit 1; exit 0")[0], "--config", str(config)]
        result = self.supervise(job)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(self.starts(), [f"--config {config}", f"--config {config} --resume auto"])
        other = self.supervise(job, "--output", self.scratch / "other")
        self.assertEqual(other.status, 2, other)
        self.assertIn("in the command or its --config file, expected the same", other.stderr)

    def test_the_folder_is_handed_to_a_program_that_names_none(self):
        command = self.script("[ $count = 1 ] && exit 1; exit 0")[:1]
        result = self.supervise(command, "--output", self.output)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(self.starts(), [f"--output {self.output} --resume auto"] * 2)

    def test_what_can_never_be(self):
        for options, words in ((("--backoff", "nan"), "--backoff: is nan, expected a number"), (("--rejoin", "nan"), "--rejoin: is nan, expected a number"),
                               (("--min-ranks", 5), "--min-ranks is 5 and the command asks for 2 ranks, expected at most as many")):
            result = self.supervise(["mpirun", "-n", "2", *self.script("exit 0")], *options)
            self.assertEqual(result.status, 2, result)
            self.assertIn(words, result.stderr)

    def test_a_job_that_shows_life_has_started(self):
        """Without logs of ours, as of a program that has a Trainer and no Session."""
        jobs = []  # at the same time: they sleep
        for number, life in enumerate(("echo > $out/checkpoints/mine.bin", "echo started", "echo started >&2")):
            folder = self.scratch / f"job{number}"
            folder.mkdir()
            jobs.append((life, folder, self.start(self.supervised(self.script(f"{life}; sleep 7; exit 0", folder), "--start-timeout", 5))))
        for life, folder, process in jobs:
            result = self.finish(process)
            self.assertEqual((result.status, len(self.starts(folder))), (0, 1), f"{life}\n{result}")


class Streams(SupervisorTest):
    """Of the supervisor itself: closed, or read by nobody."""

    def setUp(self):
        super().setUp()
        self.skip_emulated_launcher()  # nobody would read why it ends

    def test_closed(self):
        job = self.script("echo words of the job; echo words of the job >&2; ls -l /proc/self/fd > $out/descriptors; exit 0")
        self.succeed(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *program("lockstep", "run", "--", *job)])
        self.assertNotIn("words of the job", (self.output / "logs" / "supervisor.log").read_text())
        self.assertNotIn("supervisor.log", (self.output / "descriptors").read_text())

    def test_text_of_the_job_goes_on(self):
        result = self.supervise(self.script("echo to stdout; echo to stderr >&2; exit 0"))
        self.assertEqual(result.stdout, "to stdout\n")
        self.assertIn("to stderr\n", result.stderr)

    def test_that_is_read_slowly(self):
        """The job waits for its reader, and no line is lost."""
        reader, writer = os.pipe()
        text = "x" * 1000
        # 330 lines are more than the pipes hold.
        job = self.script(f"i=0; while [ $i -lt 3000 ]; do echo $i {text}; i=$((i+1)); [ $i = 330 ] && touch $out/behind; done; exit 0")
        process = subprocess.Popen(program("lockstep", "run", "--", *job), stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL,
                                   cwd=self.scratch, env=support.clean_environment(), start_new_session=True)
        os.close(writer)
        behind = self.output / "behind"
        with open(reader) as lines:
            for i in range(3000):
                self.assertEqual(next(lines), f"{i} {text}\n")
                # Slow until the job is ahead, and later now and then; but it reads on, however slow the job is: a
                # reader that stands still for ten seconds counts as none.
                if i % 300 == 0 or (i % 8 == 0 and not behind.exists()):
                    time.sleep(0.1)
            self.assertEqual(lines.read(), "")
        self.assertEqual(process.wait(60), 0)

    def test_that_nobody_reads(self):
        """The job is watched and stopped as ever, and the log has what was not read."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        text = "x" * 1000
        job = self.script(f"trap 'exit {STOPPED}' USR2; i=0; while [ $i -lt 1000 ]; do echo {text} >&2; i=$((i+1)); done; touch $out/ready\n{Signals.WAIT}")
        process = subprocess.Popen(program("lockstep", "run", "--", *job), stdin=subprocess.DEVNULL, stdout=writer, stderr=writer,
                                   cwd=self.scratch, env=support.clean_environment(), start_new_session=True)
        os.close(writer)
        self.wait_for(process, lambda: (self.output / "ready").exists())
        process.terminate()
        self.assertEqual(process.wait(60), STOPPED)
        log = (self.output / "logs" / "supervisor.log").read_text()
        self.assertIn("stderr is not read", log)
        self.assertIn("exit code 75", log)


class LeftBehind(SupervisorTest):
    def test_orphans_in_sessions_of_their_own_are_ended(self):
        left = self.scratch / "left"
        left.touch()
        orphans = f"setsid sleep 1000 & echo $! >> {left}; setsid sleep 1001 & echo $! >> {left}; wait"
        result = self.supervise(self.script(f"[ $count = 1 ] || exit 0\nsetsid sh -c '{orphans}' &\n"
                                            f"while [ $(wc -l < {left}) -lt 2 ]; do sleep 0.01; done; kill -9 $$"))
        self.assertEqual(result.status, 0, result)
        self.assertEqual([pid for pid in left.read_text().split() if os.path.exists(f"/proc/{pid}")], [], result)
        self.assertRegex(result.stderr, r"processes of the job left on this machine, which are ended: \d")
        self.expect_no_process()

    def test_one_rank_without_a_launcher_leaves_nothing(self):
        """Open MPI's process beside it ends by itself, and clears its files away."""
        job = program("train_mnist", *TRAINING, "--max-steps", 4, "--output", self.output)
        result = self.supervise(job)
        self.assertEqual(result.status, 0, result)
        self.assertNotIn(" left on this machine", result.stderr)
        self.expect_no_process()

    def test_the_job_ends_with_its_supervisor(self):
        process = self.start(program("lockstep", "run", "--", *self.script("exec sleep 1000")))
        self.wait_for(process, lambda: (self.scratch / "starts").exists())
        children = list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))
        self.assertEqual(len(children), 1)
        process.kill()
        self.finish(process)
        deadline = time.monotonic() + support.SOON
        while os.path.exists(f"/proc/{children[0]}") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{children[0]}"))


class OpenMpiFiles(SupervisorTest):
    def test_what_open_mpi_keeps_for_a_job_is_removed(self):
        """mpirun cannot when it is killed. What belongs to other jobs stays."""
        self.need_open_mpi()
        process = self.start(program("lockstep", "run", "--backoff", 0.01, "--max-restarts", 0, "--", *training(2, 100000, self.output)),
                             support.launch_environment(OMP_NUM_THREADS="1", ASAN_OPTIONS="detect_leaks=0"))
        self.wait_for(process, lambda: checkpoints(self.output))
        rank = next(p for p in support.processes_with(str(self.output)) if os.path.basename(os.readlink(f"/proc/{p}/exe")) == "train_mnist")
        environment = dict(e.split("=", 1) for e in Path(f"/proc/{rank}/environ").read_text().split("\0") if "=" in e)
        session = Path(environment.get("OMPI_MCA_orte_jobfam_session_dir") or environment["PMIX_SERVER_TMPDIR"])  # of 4, of 5
        job = re.search(r"/dev/shm/(?:vader|sm)_segment\.\S+\.([0-9a-f]+)\.\d+", Path(f"/proc/{rank}/maps").read_text())[1]
        segments = lambda number: [p for p in Path("/dev/shm").iterdir() if f".{number}." in p.name]
        self.assertTrue(session.is_dir())
        self.assertTrue(segments(job))
        others = Path(f"/dev/shm/vader_segment.elsewhere.0.{int(job, 16) ^ 0x40000000:x}.{os.getpid()}")
        self.addCleanup(others.unlink)
        others.touch()
        os.kill(support.launcher_of(str(self.output)), signal.SIGKILL)
        result = self.finish(process)
        self.assertEqual(result.status, 137, result)
        self.assertIn("files and folders of Open MPI that the job left on this machine, which are removed: ", result.stderr)
        self.assertFalse(session.exists())
        self.assertEqual(segments(job), [])
        self.assertTrue(others.exists())
        self.expect_no_process()


class Signals(SupervisorTest):
    WAIT = "mkdir -p $out/logs; echo > $out/logs/rank-0000.log; touch $out/ready; while :; do sleep 0.05; done"

    def ask(self, text, *numbers):
        process = self.start(program("lockstep", "run", "--", *self.script(text)))
        self.wait_for(process, lambda: (self.output / "ready").exists())
        for number in numbers[:-1]:
            process.send_signal(number)
            self.wait_for(process, lambda: not is_pending(process.pid, number))  # two at a time would be one
        process.send_signal(numbers[-1])
        return self.finish(process)

    def test_a_stop_in_good_order_is_asked_for_and_final(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            result = self.ask(f"trap 'exit {STOPPED}' USR2\n{self.WAIT}", number)
            self.assertEqual((result.status, len(self.starts())), (STOPPED, 1), result)
            (self.scratch / "starts").unlink()
            (self.output / "ready").unlink()
            (self.output / "logs" / "rank-0000.log").unlink()

    def test_the_second_request_ends_it_and_the_third_kills(self):
        self.assertEqual(self.ask(f"trap '' USR2\n{self.WAIT}", signal.SIGTERM, signal.SIGTERM).status, 128 + signal.SIGTERM)
        (self.output / "ready").unlink()
        result = self.ask(f"trap '' USR2 TERM\n{self.WAIT}", signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)
        self.assertEqual(result.status, 128 + signal.SIGKILL, result)
        self.expect_no_process()

    def test_usr1_is_handed_on(self):
        result = self.ask(f"trap 'touch $out/asked; exit 0' USR1\n{self.WAIT}", signal.SIGUSR1)
        self.assertEqual(result.status, 0, result)
        self.assertTrue((self.output / "asked").exists())

    def test_a_parent_that_ignores_its_children_or_blocks_signals(self):
        def deaf():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2, signal.SIGCHLD])
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        process = self.start(program("lockstep", "run", "--", *self.script(f"trap 'exit {STOPPED}' USR2\n{self.WAIT}")), preexec=deaf)
        self.wait_for(process, lambda: (self.output / "ready").exists())
        process.terminate()
        self.assertEqual(self.finish(process).status, STOPPED)

    def test_under_nohup_a_hangup_stops_nothing(self):
        process = self.start(program("lockstep", "run", "--", *self.script(f"trap 'exit {STOPPED}' USR2\ntrap 'touch $out/asked' USR1\n{self.WAIT}")),
                             preexec=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for(process, lambda: (self.output / "ready").exists())
        process.send_signal(signal.SIGHUP)
        self.wait_for(process, lambda: not is_pending(process.pid, signal.SIGHUP))
        for _ in range(2):  # the job might answer once, and then stop, as both signals are passed on when it has started
            process.send_signal(signal.SIGUSR1)
            self.wait_for(process, lambda: (self.output / "asked").exists())
            (self.output / "asked").unlink()
        process.terminate()
        result = self.finish(process)
        self.assertEqual((result.status, len(self.starts())), (STOPPED, 1), result)

    def test_between_two_starts(self):
        process = self.start(program("lockstep", "run", "--backoff", 300, "--", *self.script("exit 1")))
        self.wait_for(process, lambda: "in 300 s" in self.log())
        process.terminate()
        self.assertEqual(self.finish(process, support.SOON).status, 128 + signal.SIGTERM)

    def log(self):
        path = self.output / "logs" / "supervisor.log"
        return path.read_text() if path.exists() else ""


class Hosts(SupervisorTest):
    """A script in place of mpirun says how it was called; another in place of ssh knows which hosts are up."""

    def setUp(self):
        super().setUp()
        self.need_open_mpi()
        self.script("exit 0")
        (self.scratch / "hosts").write_text("first slots=4\nsecond slots=2\nthird slots=2\n")
        agent = self.scratch / "agent"
        agent.write_text(f"#!/bin/sh\n[ -e {self.scratch}/down.$2 ] || exit 0\necho $2 does not answer to $1 >&2; exit 255\n")
        agent.chmod(0o755)

    def mpirun(self, text, *program_options, hosts=None):
        path = self.scratch / "job.sh"
        self.script(text)
        path = path.rename(self.scratch / "mpirun")
        hosts = hosts or ["--hostfile", str(self.scratch / "hosts"), "-n", "8"]
        return [str(path), "--mca", "plm_rsh_agent", str(self.scratch / "agent"), "--mca", "plm_rsh_args", "-q", *hosts, "program",
                "--output", str(self.output), *map(str, program_options)]

    def supervise(self, command, *options):
        return super().supervise(command, "--probe-timeout", 60, *options)

    def down(self, *hosts):
        for host in hosts:
            (self.scratch / f"down.{host}").touch()

    def log(self):
        return (self.output / "logs" / "supervisor.log").read_text()

    def test_all_there(self):
        self.assertEqual(self.supervise(self.mpirun("exit 0", "--global-batch", 64)).status, 0)
        self.assertIn(f"--hostfile {self.scratch}/hosts -n 8 program", self.starts()[0])
        self.assertIn("start 1: 8 ranks on first, second, third; newest", self.log())

    def test_a_lost_one_is_left_out_and_comes_back(self):
        self.down("second")
        result = self.supervise(self.mpirun(f"[ $count = 2 ] && exit 0; cp $out/logs/supervisor.hosts $out/shorter\n"
                                            f"rm {self.scratch}/down.second; exit 1", "--global-batch", 64))
        self.assertEqual(result.status, 0, result)
        self.assertIn("start 1: 6 ranks on first, third, without second (second does not answer to -q)", self.log())
        self.assertIn(f"--hostfile {self.output}/logs/supervisor.hosts -n 6 program", self.starts()[0])
        self.assertEqual((self.output / "shorter").read_text(), "first slots=4\nthird slots=2\n")
        self.assertIn(f"--hostfile {self.scratch}/hosts -n 8 program", self.starts()[1])

    def test_of_a_list(self):
        self.down("b")
        self.supervise(self.mpirun("exit 0", "--global-batch", 64, hosts=["-H", "a:2,b:4"]))
        self.assertIn("-H a:2 program", self.starts()[0])

    def test_the_job_is_stopped_for_one_that_is_back(self):
        self.down("third")
        result = self.supervise(self.mpirun(f"[ $count = 2 ] && exit 0; trap 'exit {STOPPED}' USR2; rm {self.scratch}/down.third\n{Signals.WAIT}",
                                            "--global-batch", 64), "--rejoin", 0.001)
        self.assertEqual(result.status, 0, result)
        self.assertIn("third answers again", self.log())
        self.assertIn(" -n 6 ", self.starts()[0])
        self.assertIn(" -n 8 ", self.starts()[1])

    def expect_wait(self, command, reason, *options):
        """It does not start before the lost host is back."""
        self.down("second")
        process = self.start(program("lockstep", "run", "--backoff", 0.05, "--probe-timeout", 60, *options, "--", *command))
        self.wait_for(process, lambda: (self.output / "logs" / "supervisor.log").exists() and self.log().count(reason) >= 2)
        self.assertFalse((self.scratch / "starts").exists())
        (self.scratch / "down.second").unlink()
        self.assertEqual(self.finish(process).status, 0)
        self.assertEqual(len(self.starts()), 1)

    def test_fewer_than_wanted(self):
        self.expect_wait(self.mpirun("exit 0", "--global-batch", 64), "fewer than --min-ranks 7", "--min-ranks", 7)

    def test_a_batch_that_depends_on_ranks_needs_all(self):
        self.expect_wait(self.mpirun("exit 0", "--batch-size", 8), "all hosts are needed, as the command has no --global-batch")

    def test_keepalives_stay_as_the_user_wants_them(self):
        show = "env | grep -E '_MCA_oob_tcp_keepalive|OMPI_LOCKSTEP_JOB' | sort > $out/env; exit 0"
        environment = support.clean_environment(OMPI_MCA_oob_tcp_keepalive_time="7")
        self.succeed(program("lockstep", "run", "--probe-timeout", 60, "--", *self.mpirun(show, "--global-batch", 64)), environment=environment)
        self.assertRegex((self.output / "env").read_text(), r"^OMPI_LOCKSTEP_JOB=\S+\nOMPI_MCA_oob_tcp_keepalive_intvl=1\n"
                         r"OMPI_MCA_oob_tcp_keepalive_probes=6\nOMPI_MCA_oob_tcp_keepalive_time=7\n"
                         r"PRTE_MCA_oob_tcp_keepalive_intvl=1\nPRTE_MCA_oob_tcp_keepalive_probes=6\nPRTE_MCA_oob_tcp_keepalive_time=5\n$")


class Training(SupervisorTest):
    def start(self, command, environment=None):
        return super().start(command, environment or support.launch_environment(OMP_NUM_THREADS="1", ASAN_OPTIONS="detect_leaks=0"))

    def test_a_damaged_newest_checkpoint(self):
        self.assertEqual(self.supervise(training(2, 16, self.scratch / "whole")).status, 0)
        self.assertEqual(self.supervise(training(2, 12, self.output)).status, 0)
        newest = checkpoints(self.output)[-1]
        newest.write_bytes(newest.read_bytes()[:5000])
        result = self.supervise(training(2, 16, self.output))
        self.assertEqual(result.status, 0, result)
        self.assertIn(f"checkpoint {newest} cannot be used", result.output)
        whole, gone_on = (self.state(checkpoints(o)[-1])["tensors"] for o in (self.scratch / "whole", self.output))
        self.assertEqual(gone_on, whole)
        self.assertEqual(metrics(self.output), metrics(self.scratch / "whole"))

    def test_a_run_whose_folder_another_one_took(self):
        first = self.start(program("lockstep", "run", "--backoff", 0.01, "--", *training(1, 1000000, self.output)))
        log = self.output / "logs" / "supervisor.log"
        self.wait_for(first, lambda: checkpoints(self.output) and "is the folder of run " in log.read_text())
        by_program = {os.path.basename(os.readlink(f"/proc/{p}/exe")): p for p in support.processes_with(str(self.output))}
        rank, launcher = by_program["train_mnist"], support.launcher_of(str(self.output))
        os.kill(rank, signal.SIGSTOP)  # so that the other run is there first
        shutil.rmtree(self.output)
        self.succeed(training(1, 40, self.output))
        before = self.files(self.output)
        os.kill(rank, signal.SIGCONT)
        beside = self.wait_for(first, lambda: next((f for f in self.scratch.glob("run.*") if checkpoints(f)), None))
        os.kill(launcher, signal.SIGKILL)
        result = self.finish(first)
        self.assertEqual(result.status, 1, result)
        self.assertIn(f"expected --output {beside} in its command, to go on", result.stderr)
        self.assertEqual(result.stderr.count("lockstep run: start "), 1, result)
        self.assertEqual(self.files(self.output), before)

    def test_a_wrong_option_is_not_tried_again(self):
        result = self.supervise(training(2, "many", self.output))
        self.assertEqual(result.status, 2, result)
        self.assertIn("another start of this command would fail alike", result.stderr)


if __name__ == "__main__":
    support.main()
