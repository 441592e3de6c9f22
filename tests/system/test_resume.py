"""Killed runs, damaged checkpoints and checkpoints of other runs."""

import json
import re
import shutil

import support
from support import checkpoints, clean_environment, metrics, program, ranks

RESNET = ["--depth", 20, "--dataset", "digits", "--limit-train", 400, "--limit-eval", 64, "--global-batch", 64, "--max-steps", 12,
          "--schedule", "cosine", "--threads", 1, "--loaders", 1, "--log-every", 1, "--checkpoint-every", 0, "--quiet"]
MLP = ["--model", "mlp", "--limit-train", 640, "--limit-eval", 100, "--global-batch", 64, "--epochs", 2, "--threads", 1,
       "--loaders", 0, "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 4, "--keep", 0]


class KilledInMidEpoch(support.SystemTest):
    def undisturbed(self, *options):
        output = self.scratch / "undisturbed"
        self.succeed(ranks(2, program("train_resnet", *RESNET, *options, "--checkpoint-every-steps", 12, "--output", output)))
        return metrics(output), metrics(output, "epoch"), metrics(output, "eval"), self.state(checkpoints(output)[-1])["tensors"]

    def killed(self, *options):
        """The output of a run on two ranks, both killed after the sixth step of an epoch of seven. The checkpoint of the sixth may not be
        on disk yet; that of the fourth is, as the sixth's waited for it."""
        output = self.scratch / "killed"
        command = ranks(2, program("train_resnet", *RESNET, *options, "--checkpoint-every-steps", 2, "--output", output))
        process = self.start(command, clean_environment(LOCKSTEP_FAULT="step.begin:kill:at=7"))
        self.assertNotEqual(self.finish(process).status, 0)
        self.expect_no_process()
        self.assertLess(len(metrics(output)), 7, "it was killed in the first epoch")
        return output

    def resume(self, killed, size, *options):
        output = self.scratch / f"resumed{size}"
        shutil.copytree(killed, output)
        at = self.state(checkpoints(output)[-1])["metadata"]
        self.assertGreaterEqual(at["step"], 4)
        self.assertEqual((at["epoch"], at["offset"]), (0, 64 * at["step"]), "all samples of the steps done, and no other")
        result = self.succeed(ranks(size, program("train_resnet", *RESNET[:-1], *options, "--checkpoint-every-steps", 1, "--keep", 0,
                                                  "--output", output, "--resume", "auto")))
        self.assertIn(f"at step {at['step']}, {at['offset']} of 400 samples into epoch 1", result.output)
        for path in checkpoints(output):
            saved = self.state(path)["metadata"]
            expected = (0, 64 * saved["step"]) if saved["step"] < 7 else (1, 64 * (saved["step"] - 7))
            self.assertEqual((saved["epoch"], saved["offset"]), expected)
        return metrics(output), metrics(output, "epoch"), metrics(output, "eval"), self.state(checkpoints(output)[-1])["tensors"]

    def test_without_shards(self):
        expected = self.undisturbed()
        self.assertEqual([step for step, _ in expected[0]], list(range(1, 13)))
        self.assertEqual(self.resume(self.killed(), 2), expected)

    def test_with_shards_at_other_numbers_of_ranks(self):
        shards = ["--shards", 4]
        expected, killed = self.undisturbed(*shards), self.killed(*shards)
        for size in (1, 3):
            self.assertEqual(self.resume(killed, size, *shards), expected, f"resumed on {size} ranks")


class EpochMeans(support.SystemTest):
    def train(self, name, *options, fault=None):
        output = self.scratch / name
        environment = clean_environment(LOCKSTEP_FAULT=fault) if fault else clean_environment()
        result = self.run_command(ranks(2, program("train_mnist", *MLP, "--quiet", *options, "--output", output)), environment=environment)
        self.assertEqual(result.status == 0, fault is None, result)
        self.expect_no_process()
        return output

    def lines(self, output):
        """Of epochs, as the log has them."""
        return re.findall(r"(epoch \d+: training loss .*)", (output / "logs" / "rank-0000.log").read_text())

    def records(self, output, split):
        """Without what clocks have measured."""
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in r.items() if "second" not in k and not k.startswith("slowest")} for r in records if r["split"] == split]

    def test_are_those_of_a_run_without_a_stop(self):
        expected = self.train("undisturbed")
        self.assertEqual(len(self.lines(expected)), 2)
        epochs = self.records(expected, "epoch")
        self.assertEqual([(r["step"], r["epoch"], r["samples"]) for r in epochs], [(10, 1, 640), (20, 2, 640)])
        for record, line in zip(epochs, self.lines(expected)):
            self.assertIn(f"training loss {record['loss']:.4f}, accuracy {100 * record['accuracy']:.2f}%;", line)
        mean = sum(r["loss"] for r in self.records(expected, "train")[:10]) / 10  # every update is of 64 samples
        self.assertAlmostEqual(epochs[0]["loss"], mean, places=12)
        for step in (7, 18):
            output = self.train(f"killed{step}", fault=f"step.begin:kill:at={step}")
            self.train(f"killed{step}", "--resume", "auto")
            self.assertEqual(self.lines(output)[-1], self.lines(expected)[-1], step)
            self.assertIn(self.lines(expected)[0], self.lines(output), step)
            for split in ("train", "epoch", "eval"):
                self.assertEqual(self.records(output, split), self.records(expected, split), f"{split}, killed before {step}")

    def test_of_an_older_checkpoint_say_what_they_cover(self):
        output = self.train("run", "--max-steps", 4)
        self.succeed(program("system_state", checkpoints(output)[-1], "without", "epoch_sums"))
        self.train("run", "--max-steps", 8, "--resume", "auto")
        self.train("run", "--resume", "auto")
        first, second = self.lines(output)[-2:]
        self.assertIn(" (of the steps after 4: the checkpoint has no sums of earlier steps); evaluation loss ", first)
        self.assertNotIn("after", second)
        last, whole = self.records(output, "epoch")[-2:]
        self.assertEqual((last["step"], last["samples"], last["after_step"]), (10, 6 * 64, 4))
        self.assertNotIn("after_step", whole)


class EndedByPatience(support.SystemTest):
    """The rate is too small for a lower loss, so that the third evaluation ends a run."""

    OPTIONS = ["--model", "mlp", "--limit-train", 640, "--limit-eval", 100, "--global-batch", 64, "--epochs", 9, "--threads", 1, "--loaders", 0,
               "--log-every", 1, "--lr", 1e-30, "--patience", 2, "--checkpoint-every-steps", 1, "--keep", 2]

    def command(self, name, *options, size=2):
        return ranks(size, program("train_mnist", *self.OPTIONS, *options, "--output", self.scratch / name))

    def test_a_killed_run_ends_where_an_undisturbed_one_does(self):
        self.succeed(self.command("whole"))
        expected = metrics(self.scratch / "whole")
        self.assertEqual(expected[-1][0], 30)
        for step in (6, 12, 21, 28):
            result = self.run_command(self.command(f"killed{step}"), environment=clean_environment(LOCKSTEP_FAULT=f"step.begin:kill:at={step}"))
            self.assertNotEqual(result.status, 0, result)
            self.expect_no_process()
            self.succeed(self.command(f"killed{step}", "--resume", "auto"))
            self.assertEqual(metrics(self.scratch / f"killed{step}"), expected, step)

    def test_it_ends_at_once_when_it_is_started_again(self):
        self.succeed(self.command("run"))
        for size in (1, 2, 3):
            again = self.succeed(self.command("run", "--resume", "auto", size=size))
            self.assertRegex(again.output, r"2 evaluations without a loss below \S+ before this start; .*: checkpoint of step 30, ending")
            self.assertIn("nothing to train: 30 updates", again.output)
        self.assertEqual(metrics(self.scratch / "run")[-1][0], 30)

    def test_an_older_checkpoint_counts_anew(self):
        self.succeed(self.command("run"))
        self.succeed(program("system_state", checkpoints(self.scratch / "run")[-1], "without", "callbacks"))
        result = self.succeed(self.command("run", "--resume", "auto"))
        self.assertIn("resume: the checkpoint has no state 'patience' of a callback, which begins anew", result.output)
        self.assertEqual(metrics(self.scratch / "run")[-1][0], 60)


class DamagedCheckpoint(support.SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"
        self.command = program("train_mnist", *MLP, "--output", self.output)
        self.succeed(ranks(2, [*self.command, "--max-steps", "12"]))
        self.newest = checkpoints(self.output)[-1]
        self.whole = self.newest.read_bytes()
        self.tensors = self.state(self.newest)["tensors"]

    def expect_refused(self, *fragments):
        before = self.files(self.output)
        self.fail_with(ranks(2, [*self.command, "--resume", str(self.newest)]), *fragments)
        self.assertEqual(self.files(self.output), before)

    def expect_older_one_used(self, fragment):
        result = self.succeed(ranks(2, [*self.command, "--max-steps", "12", "--resume", "auto"]))
        self.assertEqual(result.output.count(f"checkpoint {self.newest} cannot be used: "), 1, result)
        self.assertEqual(result.output.count(fragment), 1, result)
        self.assertIn("at step 8, ", result.output)
        self.assertEqual(self.state(self.newest)["tensors"], self.tensors)  # trained and written again

    def test_cut_short(self):
        self.newest.write_bytes(self.whole[:-100])
        self.expect_refused(f"{self.newest}: cut short")
        self.expect_older_one_used("cut short")

    def test_one_flipped_bit(self):
        damaged = bytearray(self.whole)
        damaged[len(damaged) // 2] ^= 4
        self.newest.write_bytes(damaged)
        self.expect_refused(f"{self.newest}: damaged")
        self.expect_older_one_used("damaged")

    def test_on_its_way_to_a_rank(self):
        environment = support.clean_environment(LOCKSTEP_FAULT="resume.receive:corrupt:rank=1")
        resume = [*self.command, "--resume", str(self.newest)]
        for size in (2, 3):
            result = self.run_command(ranks(size, [*resume, "--no-share-weights"]), environment=environment)
            self.assertEqual(result.status, 1, result)
            self.assertRegex(result.stderr, rf"rank 1 on host \S+: .*{re.escape(str(self.newest))}, as this rank received it: damaged: XXH3-64 of the values of "
                                            r'"\S+" is \w+, expects \w+', result)
            self.expect_no_process()
        # Of a node that shares its memory one rank alone receives tensors.
        result = self.run_command(ranks(2, [*resume, "--max-steps", "12"]), environment=environment)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(self.state(self.newest)["tensors"], self.tensors)

    def test_a_copy_under_a_later_name_is_told(self):
        copy = self.newest.with_name("step-0000000020.h5")
        copy.write_bytes(self.whole)
        result = self.succeed([*self.command, "--max-steps", "12", "--resume", "auto"])
        self.assertIn(f"{copy} contains step 12, which differs from its name", result.output)

    def test_all_damaged(self):
        for path in checkpoints(self.output):
            path.write_bytes(path.read_bytes()[:1000])
        before = self.files(self.output)
        self.fail_with(ranks(2, [*self.command, "--resume", "auto"]), "no checkpoint in ", "can be used (reasons above); move them away to start anew")
        self.assertEqual(self.files(self.output), before)

    def test_no_such_file(self):
        self.newest = self.scratch / "absent.h5"
        self.expect_refused(f"{self.newest}: open: No such file or directory")

    def test_nothing_left_to_do(self):
        before = self.files(self.output)
        self.succeed(ranks(2, [*self.command, "--max-steps", "12", "--resume", "auto"]))
        self.assertEqual(self.files(self.output), before)

    def test_none_yet(self):
        result = self.succeed(ranks(2, program("train_mnist", *MLP, "--max-steps", 1, "--output", self.scratch / "new", "--resume", "auto")))
        self.assertEqual(result.output.count("starting at step 0"), 1, result)


class OtherRun(support.SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"
        self.succeed(ranks(2, program("train_mnist", *MLP, "--max-steps", 4, "--output", self.output)))
        self.saved = checkpoints(self.output)[-1]

    def expect_refused(self, arguments, *fragments):
        before = self.files(self.output)
        self.fail_with(ranks(2, program("train_mnist", *arguments, "--output", self.output, "--resume", self.saved)), *fragments)
        self.assertEqual(self.files(self.output), before)

    def test_another_model_names_the_tensor(self):
        self.expect_refused(["--model", "convnet", *MLP[2:]], "missing: conv1.weight", str(self.saved),
                            "--model was mlp, this run has convnet; pass --model mlp as before")

    def test_another_optimizer(self):
        self.expect_refused([*MLP, "--optimizer", "adam"], "'optimizer' is sgd, this run has adam")

    def test_another_data_set(self):
        other = [320 if x == 640 else x for x in MLP]
        self.expect_refused(other, "--limit-train was 640, this run has 320", "'train_samples' is 640, this run has 320", "pass --limit-train 640 as before")

    def test_another_global_batch_by_the_way(self):
        implied = ["--batch-size" if x == "--global-batch" else x for x in MLP]  # 64 on each of two ranks
        self.expect_refused(implied, "'global_batch' is 64, this run has 128; pass --global-batch 64 to keep it")

    def test_another_order_of_samples(self):
        self.expect_refused([*MLP, "--seed", 7], "'seed' is 1, this run has 7")

    def test_other_shards(self):
        self.expect_refused([*MLP, "--shards", 4], "--shards was 0, this run has 4", "pass --shards 0 as before")

    def test_later_steps_are_moved_aside(self):
        self.succeed(ranks(2, program("train_mnist", *MLP, "--output", self.scratch / "long")))
        steps = checkpoints(self.scratch / "long")
        self.assertGreater(len(steps), 3)
        self.succeed(ranks(2, program("train_mnist", *MLP, "--max-steps", 9, "--keep", 2, "--output", self.scratch / "long",
                                      "--resume", steps[0])))
        aside = sorted(p.name for p in (self.scratch / "long" / "checkpoints.1").iterdir())
        self.assertEqual(aside, sorted(p.name for p in steps[1:]))
        self.assertEqual([p.name for p in checkpoints(self.scratch / "long")], ["step-0000000008.h5", "step-0000000009.h5"])

    def test_nothing_left_to_train_is_said(self):
        result = self.succeed(ranks(2, program("train_mnist", *MLP, "--max-steps", 4, "--output", self.output, "--resume", "auto")))
        self.assertIn("nothing to train: 4 updates", result.output)

    def test_a_weights_file_is_told_from_a_checkpoint(self):
        self.saved.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(3000))
        self.expect_refused(MLP, str(self.saved))

    def test_changed_options_are_named(self):
        result = self.succeed(ranks(2, program("train_mnist", *MLP, "--max-steps", 5, "--lr", 0.011, "--output", self.output, "--resume", "auto")))
        self.assertIn("resume: --lr: 0.05 in the checkpoint, 0.011 now", result.output)
        self.assertEqual(result.output.count("resume: the learning-rate schedule ends after 0."), 1, result)
        self.assertNotIn("--resume:", result.output)  # that it is resumed is no news
        steps = [json.loads(line)["step"] for line in (self.output / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(steps, sorted(steps))


if __name__ == "__main__":
    support.main()
