"""Checkpoints that are written while training goes on: kills, full disks and lost folders in the middle of it."""

import json
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import support
from support import checkpoints, clean_environment, metrics, program, ranks

MLP = ["--model", "mlp", "--limit-train", 640, "--limit-eval", 100, "--global-batch", 64, "--threads", 1, "--loaders", 0, "--log-every", 1,
       "--max-steps", 16, "--checkpoint-every", 0, "--quiet"]


class CheckpointTest(support.SystemTest):
    def command(self, output, *options):
        return ranks(2, program("train_mnist", *MLP, *options, "--output", self.scratch / output))

    def faults(self, *faults):
        return clean_environment(LOCKSTEP_FAULT=" ".join(faults))

    def outcome(self, output):
        output = self.scratch / output
        return metrics(output), metrics(output, "eval"), self.state(checkpoints(output)[-1])["tensors"]

    def steps(self, output):
        return [int(p.stem.removeprefix("step-")) for p in checkpoints(self.scratch / output)]

    def saved(self, output, step):
        """Whether the log says that this checkpoint is on the disk."""
        log = self.scratch / output / "logs" / "rank-0000.log"
        return log.exists() and f"saved {self.scratch / output / 'checkpoints'}/step-{step:010}.h5," in log.read_text()


class InTheBackground(CheckpointTest):
    def test_no_bit_depends_on_it(self):
        self.succeed(self.command("often", "--checkpoint-every-steps", 1, "--keep", 2))
        self.succeed(self.command("once", "--checkpoint-every-steps", 16))
        self.assertEqual(self.outcome("often"), self.outcome("once"))
        self.assertEqual(self.steps("often"), [15, 16])

    def test_by_the_clock(self):
        self.succeed(self.command("soon", "--checkpoint-every-minutes", 1e-9, "--keep", 0))
        self.assertEqual(self.steps("soon"), list(range(1, 17)))
        self.succeed(self.command("late", "--checkpoint-every-minutes", 1e6, "--keep", 0))
        self.assertEqual(self.steps("late"), [16], "the end of the run")

    def test_a_kill_at_any_point_of_it_leaves_whole_checkpoints(self):
        self.succeed(self.command("undisturbed", "--checkpoint-every-steps", 4))
        expected = self.outcome("undisturbed")
        for point, rank in (("snapshot", 1), ("snapshot", 0), ("write", 0), ("rename", 0), ("prune", 0)):
            with self.subTest(point=point, rank=rank):
                output = f"{point}{rank}"
                options = ["--checkpoint-every-steps", 4, "--keep", 2]
                fault = self.faults(f"checkpoint.{point}:kill:rank={rank}:at=12")
                self.assertNotEqual(self.run_command(self.command(output, *options), environment=fault).status, 0)
                self.expect_no_process()
                for path in checkpoints(self.scratch / output):
                    self.state(path)
                left = self.steps(output)
                # The kill of rank 1 may end rank 0 before or after its file is complete.
                self.assertIn(left, {"prune": [[4, 8, 12]], "snapshot": [[4, 8], [8, 12], [4, 8, 12]]}.get(point, [[4, 8]]))
                result = self.succeed(self.command(output, *options, "--resume", "auto"))
                self.assertEqual(self.outcome(output), expected)
                self.assertEqual(self.steps(output), [12, 16])
                self.assertEqual([p.name for p in (self.scratch / output / "checkpoints").iterdir() if p.suffix == ".tmp"], [], result)

    def test_which_stay(self):
        self.succeed(self.command("run", "--epochs", 4, "--max-steps", 0, "--checkpoint-every", 1, "--checkpoint-every-steps", 4,
                                  "--keep", "last:1,every:8,best:loss"))
        loss = {step: float(value) for step, value in metrics(self.scratch / "run", "eval")}
        best = min(loss, key=lambda step: (loss[step], step))
        self.assertEqual(self.steps("run"), sorted({8, 16, 24, 32, 40, best}))
        self.assertRegex((self.scratch / "run" / "logs" / "rank-0000.log").read_text(),
                         rf"best checkpoint: loss [0-9.e-]+ at step {best}, .*run/checkpoints/step-{best:010}\.h5")
        said = self.state(checkpoints(self.scratch / "run")[-1])["metadata"]["evaluation"]
        self.assertEqual((said["step"], said["loss"]), (40, loss[40]))


class Trouble(CheckpointTest):
    def test_a_write_that_fails_is_named_and_training_goes_on(self):
        once = self.scratch / "fired"
        result = self.succeed(self.command("run", "--checkpoint-every-steps", 8, "--keep", 0),
                              environment=self.faults(f"checkpoint.write:throw:at=16:once={once}"))
        self.assertEqual(result.output.count("checkpoint of step 16 could not be written: "), 1, result)
        self.assertIn("training goes on", result.output)
        self.assertEqual(self.steps("run"), [8, 16], "the end of the run tries again")

    def test_the_end_without_its_checkpoint_is_an_error(self):
        result = self.run_command(self.command("run", "--checkpoint-every-steps", 8), environment=self.faults("checkpoint.write:throw:at=16"))
        self.assertEqual(result.status, 1, result)
        self.assertEqual(result.output.count("[checkpoint] the final checkpoint (step 16) could not be written: [fault point] checkpoint.write at 16"), 1, result)
        self.assertEqual(self.steps("run"), [8])
        self.expect_no_process()

    def test_a_folder_that_is_lost_is_made_again(self):
        output, away = self.scratch / "run", self.scratch / "away"
        go = self.scratch / "go"
        process = self.start(self.command("run", "--checkpoint-every-steps", 4, "--keep", 0), self.faults(f"step.begin:sleep=600:rank=0:at=6:until={go}"))
        self.wait_for(process, lambda: self.saved("run", 4))  # which is written while rank 0 comes to step 6, and is held there
        output.rename(away)
        go.touch()
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.output.count(f"{output}/.lock was removed or replaced; it is created and locked again"), 1, result)
        self.assertEqual(self.steps("away"), [4])
        self.assertEqual(self.steps("run"), [8, 12, 16])
        # Open files go on where they were until then.
        moved, made = [step for step, _ in metrics(away)], [step for step, _ in metrics(output)]
        self.assertEqual(moved + made, list(range(1, 17)))
        self.assertIn(8, moved)
        self.assertIn(16, made)

    def removed(self, output, *names, ranks_stopped=(0,)):
        """A run whose files are removed after its first checkpoint, and what it said."""
        go = self.scratch / "go"
        process = self.start(self.command(output, "--checkpoint-every-steps", 4, "--keep", 0, "--hash-every", 1),
                             self.faults(*(f"step.begin:sleep=600:rank={rank}:at=6:until={go}" for rank in ranks_stopped)))
        self.wait_for(process, lambda: self.saved(output, 4))
        self.wait_for(process, lambda: 5 in [step for step, _ in metrics(self.scratch / output)])
        for name in names:
            (self.scratch / output / name).unlink() if name else shutil.rmtree(self.scratch / output)
        go.touch()
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        return result

    def test_files_that_are_removed_are_named_and_opened_anew(self):
        names = ["metrics.jsonl", "hashes.jsonl", "run.json", "logs/rank-0000.log", "logs/rank-0001.log"]
        result = self.removed("run", *names, ranks_stopped=(0, 1))
        output = self.scratch / "run"
        for name in names:
            said = [line for line in result.stderr.splitlines() if "warning: " in line and f"{output / name} was removed or replaced" in line
                    or f"{output / name}: the file with the id of the run was removed" in line]
            self.assertEqual(len(said), 1, f"{name}\n{result}")
            self.assertTrue((output / name).is_file(), name)
        self.assertEqual([step for step, _ in metrics(output)], list(range(9, 17)))
        log = (output / "logs" / "rank-0000.log").read_text()
        self.assertIn("step-0000000016.h5, ", log)
        self.succeed(self.command("run", "--checkpoint-every-steps", 4, "--resume", "auto"))

    def test_files_of_a_folder_that_is_removed_are_made_again_in_the_new_one(self):
        result = self.removed("run", "", ranks_stopped=(0, 1))
        output = self.scratch / "run"
        for name in ("metrics.jsonl", "logs/rank-0000.log", "logs/rank-0001.log"):
            self.assertEqual(result.stderr.count(f"{output / name} was removed or replaced"), 1, f"{name}\n{result}")
            self.assertTrue((output / name).is_file(), name)
        self.assertEqual([step for step, _ in metrics(output)], list(range(9, 17)))
        self.assertEqual(self.steps("run"), [8, 12, 16])

    def test_an_unwritable_folder_is_counted_instead_of_repeated(self):
        output = self.scratch / "run"
        go = self.scratch / "go"
        process = self.start(self.command("run", "--checkpoint-every-steps", 1, "--keep", 0), self.faults(f"step.begin:sleep=600:rank=0:at=6:until={go}"))
        self.wait_for(process, lambda: self.saved("run", 5))
        shutil.rmtree(output / "checkpoints")
        (output / "checkpoints").touch()  # nobody can write there, root neither
        go.touch()
        result = self.finish(process)
        self.assertEqual(result.status, 1, result)
        self.assertEqual(result.output.count("training goes on, next try in "), 1, result)
        self.assertEqual(result.output.count("failed checkpoint in a row"), 10, result)
        self.assertIn("; it is the 11th failed checkpoint in a row", result.output)
        self.assertIn("[checkpoint] the final checkpoint (step 16) could not be written: ", result.output)

    def test_a_limit_on_the_size_of_files_is_named_and_leaves_older_checkpoints(self):
        go = self.scratch / "go"
        process = self.start(self.command("run", "--checkpoint-every-steps", 4, "--keep", 0), self.faults(f"step.begin:sleep=600:rank=0:at=6:until={go}"))
        self.wait_for(process, lambda: self.saved("run", 4))
        saved = checkpoints(self.scratch / "run")[-1]
        before = saved.read_bytes()
        # Logs and metrics fit in there, checkpoints do not. Set here, as `ulimit -f` would be the memory's of Open MPI as well.
        for rank in support.processes_with(str(self.scratch / "run")):
            hard = resource.prlimit(rank, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(rank, resource.RLIMIT_FSIZE, (len(before) // 2, hard))
        go.touch()
        result = self.finish(process)
        self.assertEqual(result.status, 1, result)
        self.assertEqual(result.output.count("checkpoint of step 8 could not be written: "), 1, result)
        self.assertIn("File too large", result.output)
        self.assertEqual(result.output.count("[checkpoint] the final checkpoint (step 16) could not be written: "), 1, result)
        self.assertEqual(self.steps("run"), [4])
        self.assertEqual(saved.read_bytes(), before)
        self.assertEqual([p.name for p in saved.parent.iterdir()], [saved.name])
        self.assertEqual([step for step, _ in metrics(self.scratch / "run")], list(range(1, 17)))
        self.expect_no_process()
        self.succeed(self.command("run", "--checkpoint-every-steps", 4, "--resume", "auto"))


class FullDisk(CheckpointTest):
    def test_a_full_disk_is_named_and_tried_again(self):
        output, copy, probe = self.scratch / "run", self.scratch / "copy", self.scratch / "probe"
        for folder in (output, copy, probe):
            folder.mkdir()
        if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", probe], capture_output=True).returncode != 0:
            self.skipTest("a small disk cannot be mounted here (needs root)")
        # Seen by the job alone, so what is left is copied when it has ended.
        job = """mount -t tmpfs -o size=16m tmpfs "$1" && head -c 15900k /dev/zero >"$1/filler" || exit 99
                 output=$1 copy=$2; shift 2; "$@"; status=$?; cp -r "$output/." "$copy"; exit $status"""
        process = self.start(["unshare", "--mount", "sh", "-c", job, "sh", output, copy, *self.command("run", "--checkpoint-every-steps", 4)],
                             self.faults("step.begin:stop:rank=0:at=15"))
        stopped = self.wait_for_stopped(process, str(output))
        Path(f"/proc/{stopped}/root{output}/filler").unlink()
        os.kill(stopped, signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertIn("checkpoint of step 4 could not be written: ", result.output)
        self.assertIn("No space left on device", result.output)
        self.assertEqual(self.steps("copy")[-1:], [16], result)
        self.assertEqual([step for step, _ in metrics(copy)], list(range(1, 17)))


class OtherJobs(CheckpointTest):
    """Folders that are taken from under a job: no file of it may come into another job's run, nor be taken for one of it."""

    def run_id(self, output):
        return json.loads((self.scratch / output / "run.json").read_text())["run"]

    def expect_one_run(self, output, seed, run):
        """Everything in this folder is of one run."""
        self.assertEqual(self.run_id(output), run)
        for path in checkpoints(self.scratch / output):
            metadata = self.state(path)["metadata"]
            self.assertEqual((metadata["run"], metadata["seed"]), (run, seed), path)
            self.assertIn(run.encode(), path.read_bytes()[:512], "also where it is read without HDF5")

    def test_a_folder_that_was_removed_and_taken_is_left_to_the_other_job(self):
        output = self.scratch / "run"
        process = self.start(self.command("run", "--checkpoint-every-steps", 4, "--keep", 0, "--seed", 1), self.faults("step.begin:stop:rank=0:at=6"))
        stopped = self.wait_for_stopped(process, str(output))
        mine = self.run_id("run")
        shutil.rmtree(output)
        self.succeed(self.command("run", "--checkpoint-every-steps", 8, "--keep", 0, "--seed", 2))
        others, before = self.run_id("run"), self.files(output)
        os.kill(stopped, signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result)
        after = self.files(output)
        self.assertEqual([name for name in {**before, **after} if before.get(name) != after.get(name)], [], "the other job's files")
        self.expect_one_run("run", 2, others)
        own = f"run.{mine}"
        self.assertEqual(result.output.count(f"this job goes on in {self.scratch / own}; resume it with --output "), 1, result)
        self.expect_one_run(own, 1, mine)
        self.assertEqual(self.steps(own)[-3:], [8, 12, 16])
        self.succeed(self.command(own, "--seed", 1, "--resume", "auto"))

    def test_two_folders_that_are_swapped_while_files_are_written(self):
        jobs = {name: self.start(self.command(name, "--checkpoint-every-steps", 4, "--keep", 0, "--seed", seed),
                                 self.faults("checkpoint.rename:stop:at=8")) for seed, name in enumerate(("first", "second"), 1)}
        stopped = [self.wait_for_stopped(process, str(self.scratch / name)) for name, process in jobs.items()]
        ids = {name: self.run_id(name) for name in jobs}
        (self.scratch / "first").rename(self.scratch / "third")
        (self.scratch / "second").rename(self.scratch / "first")
        (self.scratch / "third").rename(self.scratch / "second")
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        for process in jobs.values():
            result = self.finish(process)
            self.assertEqual(result.status, 0, result)
            self.assertEqual(result.output.count(" is no longer the folder of this job "), 1, result)
        for name, seed, other in (("first", 2, "second"), ("second", 1, "first")):
            self.expect_one_run(name, seed, ids[other])
            self.assertEqual(self.steps(name), [4, 8, 12, 16])
            self.assertEqual([step for step, _ in metrics(self.scratch / name)], list(range(1, 17)))
            self.assertFalse([p for p in (self.scratch / name / "checkpoints").iterdir() if p.suffix == ".tmp"])

    def test_resume_auto_leaves_out_checkpoints_of_another_run(self):
        plain = ["--schedule", "constant", "--eval-every", 0]
        self.succeed(self.command("undisturbed", "--checkpoint-every-steps", 4, *plain))
        self.succeed(self.command("run", "--checkpoint-every-steps", 4, *plain, "--max-steps", 8))
        self.succeed(self.command("other", "--checkpoint-every-steps", 4, *plain, "--seed", 2))
        stranger = self.scratch / "run" / "checkpoints" / checkpoints(self.scratch / "other")[-1].name
        shutil.copy(checkpoints(self.scratch / "other")[-1], stranger)
        result = self.succeed(self.command("run", "--checkpoint-every-steps", 4, *plain, "--resume", "auto"))
        self.assertEqual(result.output.count(f"checkpoint {stranger} belongs to run {self.run_id('other')}, and this is run {self.run_id('run')}"), 1, result)
        self.assertEqual(self.outcome("run"), self.outcome("undisturbed"))
        self.assertTrue((self.scratch / "run" / "checkpoints.1" / stranger.name).exists())
        self.expect_one_run("run", 1, self.run_id("run"))

    def test_a_run_may_begin_from_another_runs_checkpoint(self):
        self.succeed(self.command("other", "--checkpoint-every-steps", 4, "--keep", 0))
        other = self.run_id("other")
        result = self.succeed(self.command("run", "--checkpoint-every-steps", 4, "--keep", 0, "--resume", checkpoints(self.scratch / "other")[1]))
        self.assertNotEqual(self.run_id("run"), other)
        log = (self.scratch / "run" / "logs" / "rank-0000.log").read_text()
        self.assertEqual(log.count(f"was written by run {other}; a new run, {self.run_id('run')}, begins from it"), 1, result)
        self.assertEqual(self.steps("run"), [12, 16])
        self.expect_one_run("run", 1, self.run_id("run"))
        # In a folder with a run of its own, that one goes aside as a whole.
        self.succeed(self.command("run", "--checkpoint-every-steps", 4, "--keep", 0, "--resume", checkpoints(self.scratch / "other")[0]))
        self.assertEqual(self.steps("run"), [8, 12, 16])
        self.assertEqual([step for step, _ in metrics(self.scratch / "run")], list(range(5, 17)))


class OneJobPerOutput(CheckpointTest):
    def test_a_second_one_is_refused_and_touches_nothing(self):
        output = self.scratch / "run"
        process = self.start(self.command("run", "--checkpoint-every-steps", 4), self.faults("step.begin:stop:rank=0:at=6"))
        stopped = self.wait_for_stopped(process, str(output))
        before, owner = self.files(output), (output / ".lock").read_text()
        second = self.run_command(self.command("run", "--checkpoint-every-steps", 4))
        self.assertEqual(second.status, 1, second)
        self.assertEqual(second.output.count(f"'{output}' is in use by process {stopped} on host {os.uname().nodename}, since 20"), 1, second)
        self.assertEqual((self.files(output), (output / ".lock").read_text()), (before, owner))
        os.kill(stopped, signal.SIGCONT)
        self.assertEqual(self.finish(process).status, 0)
        self.succeed(self.command("run", "--checkpoint-every-steps", 4))
        lock = (output / ".lock").read_text()
        self.assertIn(os.uname().nodename, lock)
        self.assertEqual(json.loads((output / "metrics.jsonl").read_text().splitlines()[0])["step"], 1)


if __name__ == "__main__":
    support.main()
