"""Threads and cores of a real program: how many it starts, and what it says about where they may run."""

import os
import unittest
from pathlib import Path

import support
from support import clean_environment, launch_environment, metrics, program

SMALL = ["--model", "mlp", "--limit-train", 256, "--limit-eval", 64, "--global-batch", 64]
ONCE = [*SMALL, "--epochs", 1, "--loaders", 0]


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two cores")
class Placement(support.SystemTest):
    def said(self, mpirun, *arguments):
        self.need_open_mpi()
        result = self.succeed(["mpirun", *mpirun, *program("train_mnist", *ONCE, "--output", self.scratch / "run", *arguments)],
                              environment=launch_environment())
        self.assertEqual(result.output.count("\ncores: "), 1, result)
        return result.output

    def test_one_core_for_two_threads_is_warned_of(self):
        output = self.said(["--bind-to", "core", "-n", 1], "--threads", 2)
        self.assertEqual(output.count("rank 0 is bound to 1 core and has 2 threads"), 1, output)
        self.assertIn("bound to 1,", output)

    def test_more_threads_than_cores_are_warned_of(self):
        output = self.said(["--oversubscribe", "--bind-to", "none", "-n", 2], "--threads", os.cpu_count())
        self.assertEqual(output.count(" cores and take turns; use fewer ranks or --threads"), 1, output)
        self.assertIn("(ranks 0-1)", output)

    def test_good_launches_are_not(self):
        for mpirun, threads in ((["--bind-to", "none", "-n", 1], 2), (["--bind-to", "core", "-n", 2], 1),
                                (["--bind-to", "none", "-n", 2], 1)):
            output = self.said(mpirun, "--threads", threads)
            self.assertNotIn("warning", output)
            self.assertEqual("not bound" in output, "none" in mpirun, output)


class Budget(support.SystemTest):
    def threads_while_training(self, *arguments, **variables):
        output = self.scratch / "-".join(map(str, (*arguments, *variables)))
        process = self.start(program("train_mnist", *SMALL, "--epochs", 100000, "--log-every", 1, "--output", output, *arguments),
                             clean_environment(**variables))
        try:
            self.wait_for(process, lambda: self.evaluated_twice(output))
            return len(list(Path(f"/proc/{process.pid}/task").iterdir()))
        finally:
            process.kill()
            process.communicate()

    def evaluated_twice(self, output):  # then every part of the program has run, the checkpoint after the first epoch too
        return (output / "metrics.jsonl").exists() and len(metrics(output, "eval")) >= 2

    def test_no_more_than_asked_for(self):
        # MPI's own come on top. With all pools held down by hand it is they, and the one that trains.
        least = self.threads_while_training("--threads", 1, "--loaders", 0, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.assertEqual(self.threads_while_training("--threads", 1, "--loaders", 0), least)
        self.assertEqual(self.threads_while_training("--threads", 2, "--loaders", 0), least + 1)
        # Training and evaluation have a loader each, and one of them waits.
        self.assertEqual(self.threads_while_training("--threads", 1, "--loaders", 1), least + 2)

    def test_variables_that_give_fewer_threads(self):
        train = program("train_mnist", *SMALL, "--epochs", 1, "--threads", 2, "--output", self.scratch / "fewer")
        refused = self.run_command(train, environment=clean_environment(OMP_THREAD_LIMIT="1"))
        self.assertEqual(refused.status, 1, refused)
        self.assertEqual(refused.stderr.count("[threads] OMP_THREAD_LIMIT is 1, expected at least the 2 threads"), 1, refused)
        self.succeed(train, environment=clean_environment(OMP_DYNAMIC="true"))
        many = self.run_command(program("train_mnist", *SMALL, "--output", self.scratch / "many"), environment=clean_environment(OMP_NUM_THREADS="100000"))
        self.assertEqual(many.status, 1, many)
        self.assertEqual(many.stderr.count("[threads] OMP_NUM_THREADS is 100000, expected 1 to 4096"), 1, many)


if __name__ == "__main__":
    support.main()
