"""The ways to start a real program, and its command line."""

import os

import support
from support import SOURCE, clean_environment, launch_environment, metrics, program, ranks

SMALL = ["--model", "mlp", "--limit-train", 256, "--limit-eval", 64, "--global-batch", 64, "--epochs", 1, "--threads", 1, "--loaders", 0,
         "--log-every", 1]


class Ways(support.SystemTest):
    def expect_trained(self, launcher, size, environment=None):
        output = self.scratch / "run"
        result = self.succeed([*launcher, *program("train_mnist", *SMALL, "--shards", 4, "--output", output)],
                              environment=environment or launch_environment())
        self.assertEqual(result.output.count(f"{size} rank{'s' if size > 1 else ''} on 1 host"), 1, result)
        self.assertEqual(len(list((output / "logs").iterdir())), size)
        return metrics(output)

    def test_all_train_the_same(self):
        wrapper = SOURCE / "scripts" / "train.sh"
        alone = self.expect_trained([], 1, clean_environment())
        self.assertEqual(len(alone), 4)
        hostfile = ["mpirun", "--hostfile", SOURCE / "hostfiles" / "localhost", "-n", "2"]
        of_open_mpi = [(["mpirun", "-H", "localhost:2"], 2), (hostfile, 2), ([*hostfile, wrapper], 2)]
        of_hydra = [(["mpirun", "-hosts", "localhost:2", "-n", "2"], 2)]
        for launcher, size in [*(of_open_mpi if support.open_mpi() else of_hydra), ([*support.mpirun(3), wrapper], 3), ([wrapper], 1),
                               (program("lockstep", "launch", "--nproc-per-node", 2), 2)]:
            with self.subTest(launcher=launcher):
                self.setUp()  # a scratch folder of its own
                self.assertEqual(self.expect_trained(launcher, size), alone)

    def test_the_wrapper_passes_failures_on(self):
        result = self.run_command([*support.mpirun(2), SOURCE / "scripts" / "train.sh",
                                   *program("train_mnist", "--lr", "fast", "--output", self.scratch / "run")], environment=launch_environment())
        self.assertEqual(result.status, 2, result)


class CommandLine(support.SystemTest):
    def test_help_is_printed_once(self):
        for name in ("train_toy", "train_mnist", "train_resnet"):
            result = self.succeed(ranks(2, program(name, "--help", "--output", self.scratch)))
            for text in ("--checkpoint-every-steps", "--global-batch", "Learning rate", "--config"):
                self.assertIn(text, result.stdout)
            self.assertEqual(result.stdout.count("samples per update over all ranks"), 1, result)

    def test_torchruns_variables_are_of_launch_alone(self):
        wrong = clean_environment(NNODES="two", MASTER_PORT="x", NODE_RANK="-1")
        self.succeed(program("lockstep", "models"), environment=wrong)
        refused = self.run_command(program("lockstep", "launch", "true"), environment=wrong)
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("NNODES in the environment is 'two', expected 1 to 100000", refused.stderr)
        output = self.scratch / "run"
        self.succeed(program("lockstep", "launch", "--standalone", "--master-port", 1234, "-np", 2, "--",
                             *program("train_mnist", *SMALL, "--output", output)), environment=launch_environment(NNODES="two", MASTER_PORT="x"))
        self.assertEqual(len(list((output / "logs").iterdir())), 2)

    def test_launch_leaves_the_job_that_it_is_in(self):
        outer = {"OMPI_COMM_WORLD_SIZE": "2", "PMIX_OF_OUTER_JOB": "1", "OMPI_MCA_orte_of_outer_job": "1", "OMPI_MCA_mpi_of_user": "1"}
        for options in (["--nnodes", 1], []):  # which NNODES says
            result = self.succeed(program("lockstep", "launch", *options, "sh", "-c", "env"), environment=launch_environment(**outer, NNODES="1"))
            self.assertNotIn("OF_OUTER_JOB", result.stdout.upper(), options)
            self.assertIn("OMPI_MCA_mpi_of_user=1", result.stdout)

    def test_torchruns_options_name_their_counterpart(self):
        for words, text in [(("--max-restarts", 3), "lockstep run --max-restarts N -- lockstep launch"),
                            (("--rdzv-backend", "c10d"), "--master-addr"), (("--rdzv-endpoint", "a:1"), "--master-addr HOST"),
                            (("--nnodes", "1:4"), "'1:4' is elastic, which is not here"),
                            (("--standalone", "--nnodes", 2), "expected no --nnodes"),
                            (("-np", 2, "--nproc-per-node", 2), "-n 2 is the number of ranks of all hosts")]:
            with self.subTest(words=words):
                self.fail_with(program("lockstep", "launch", *words, "true"), text, status=2)

    def test_config_file(self):
        config = self.scratch / "run.toml"
        config.write_text('model = "mlp"\nlimit-train = 256\nlimit-eval = 64\nglobal-batch = 64\nepochs = 5\nlr = 0.02\n'
                          'schedule = "constant"\nthreads = 1\nlog-every = 1\n')
        output = self.scratch / "run"
        self.succeed(ranks(2, program("train_mnist", "--config", config, "--epochs", 1, "--output", output)))
        text = (output / "metrics.jsonl").read_text()
        self.assertEqual(len(metrics(output)), 4)  # the command line's one epoch, not the file's five
        self.assertEqual(text.count('"lr":0.02,'), 6)  # four steps, their mean, and the evaluation
        config.write_text("learning-rate = 1\n")
        self.fail_with(ranks(2, program("train_mnist", "--config", config)), f"--config: {config}, line 1: unknown key learning-rate, did you mean lr?", status=2)

    def test_quiet(self):
        result = self.succeed(ranks(2, program("train_mnist", *SMALL, "--quiet", "--output", self.scratch / "run")))
        self.assertEqual(result.output.strip(), "")

    def test_no_terminal_no_bar(self):
        result = self.succeed(ranks(2, program("train_mnist", *SMALL, "--output", self.scratch / "run")))
        self.assertNotIn("\r", result.output)
        self.assertNotIn("\x1b", result.output)
        self.assertEqual(result.output.count("; evaluation loss"), 1, result)

    def test_relative_output(self):
        self.succeed(ranks(2, program("train_mnist", *SMALL)))
        self.assertTrue(os.path.exists(self.scratch / "runs" / "train_mnist" / "metrics.jsonl"))


if __name__ == "__main__":
    support.main()
