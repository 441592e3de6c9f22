"""Logs of a run as people know them: levels, folders of hosts, losses of ranks, DLLogger's form, and `lockstep logs`."""

import json
import re
import signal
import socket

import support
from support import SystemTest, checkpoints, clean_environment, metrics, program, ranks

MLP = ["--model", "mlp", "--dataset", "digits", "--limit-train", 96, "--limit-eval", 32, "--global-batch", 32, "--epochs", 2, "--threads", 1,
       "--loaders", 0, "--log-every", 1, "--checkpoint-every", 0]
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (\S+) rank (\d+) (\w+): (.*)")


class LogsTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.output = self.scratch / "run"

    def train(self, size, *options, environment=None, **settings):
        command = program("train_mnist", *MLP, "--output", self.output, *options)
        return self.succeed(ranks(size, command), environment=environment, **settings)

    def logs(self, *options):
        return self.succeed(program("lockstep", "logs", self.output, *options)).stdout.splitlines()

    def dllogger(self):
        lines = (self.output / "dllogger.json").read_text().splitlines()
        for line in lines:
            self.assertTrue(line.startswith("DLLL {"), line)
        return [json.loads(line[5:]) for line in lines]


class Levels(LogsTest):
    def test_what_is_written_follows_the_level(self):
        for level, has, has_not in [("trace", ["trace: update 6: ", "debug: epoch 2 begins after update 3"], []),
                                    ("debug", ["debug: an evaluation of 32 samples begins", "epoch 2/2  step 6/6"], ["trace: "]),
                                    ("info", ["epoch 1/2  step 1/6", "model: "], ["debug: ", "trace: "]),
                                    ("warning", [], ["model: ", "epoch 1"]), ("off", [], ["model: ", "epoch 1", "warning"])]:
            with self.subTest(level=level):
                result = self.train(1, "--log-level", level)
                log = (self.output / "logs" / "rank-0000.log").read_text()
                (self.output / "logs" / "rank-0000.log").unlink()
                for part in has:
                    self.assertIn(part, result.stdout)
                    self.assertIn(part, log)
                for part in has_not:
                    self.assertNotIn(part, result.output)
                    self.assertNotIn(part, log)

    def test_the_environment_gives_the_level_and_the_option_wins(self):
        loud = clean_environment(LOCKSTEP_LOG_LEVEL="debug")
        result = self.train(1, environment=loud)
        self.assertIn("debug: epoch 1 begins", result.stdout)
        self.assertIn("environment: --log-level debug is from LOCKSTEP_LOG_LEVEL", result.stdout)
        result = self.train(1, "--log-level", "info", environment=loud)
        self.assertNotIn("debug: ", result.stdout)
        self.assertNotIn("environment: ", result.stdout)
        wrong = self.run_command(ranks(2, program("train_mnist", *MLP)), environment=clean_environment(LOCKSTEP_LOG_LEVEL="loud"))
        self.assertEqual(wrong.status, 2, wrong)
        self.assertEqual(wrong.output.count("--log-level is 'loud', expected one of trace, debug, info, warning, error, off; "
                                            "the value is from LOCKSTEP_LOG_LEVEL"), 1, wrong)

    def test_an_update_has_a_line_with_epoch_step_and_loss(self):
        result = self.train(2)
        lines = re.findall(r"^epoch (\d)/2  step (\d)/6  loss (\S+)  accuracy", result.stdout, re.M)
        self.assertEqual([(int(epoch), int(step)) for epoch, step, _ in lines], [(1 + (s - 1) // 3, s) for s in range(1, 7)])
        for (_, _, shown), (_, exact) in zip(lines, metrics(self.output)):
            self.assertAlmostEqual(float(shown), float(exact), delta=1e-4 * float(exact))


class Ranks(LogsTest):
    def test_each_rank_logs_its_own_loss(self):
        self.train(3, "--log-rank-loss", "--global-batch", 32, "--accumulate", 2)
        sums = {}
        for rank in range(3):
            log = (self.output / "logs" / f"rank-{rank:04}.log").read_text()
            own = re.findall(r"epoch (\d)/2  step (\d)/6  own loss (\S+)  (\d+) samples$", log, re.M)
            self.assertEqual([int(step) for _, step, _, _ in own], list(range(1, 7)))
            for _, step, loss, samples in own:
                sums.setdefault(int(step), []).append((float(loss), int(samples)))
        for step, exact in metrics(self.output):
            samples = sum(n for _, n in sums[step])
            self.assertEqual(samples, 32)
            self.assertAlmostEqual(sum(loss * n for loss, n in sums[step]) / samples, float(exact), delta=1e-3)

    def test_without_the_option_no_rank_does(self):
        self.train(2)
        self.assertFalse([line for line in self.logs() if "own loss" in line])


class Merged(LogsTest):
    def test_folders_of_hosts_and_flat_files_are_merged_by_time(self):
        self.train(2, "--max-steps", 3, "--checkpoint-every-steps", 3, "--log-per-host")
        host = socket.gethostname()
        self.assertEqual(sorted(p.name for p in (self.output / "logs" / host).iterdir()), ["rank-0000.log", "rank-0001.log"])
        self.train(2, "--resume", "auto")  # without --log-per-host: the logs of the same run lie in both places
        self.assertEqual(sorted(p.name for p in (self.output / "logs").iterdir()), sorted([host, "rank-0000.log", "rank-0001.log"]))
        lines = [LINE.fullmatch(line) for line in self.logs()]
        self.assertTrue(all(lines))
        times = [line[1] for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertEqual({line[3] for line in lines}, {"0", "1"})
        steps = [line[5] for line in lines if line[3] == "1" and re.match(r"epoch \d/2  step", line[5])]
        self.assertEqual([int(re.search(r"step (\d)/", s)[1]) for s in steps], list(range(1, 7)))
        self.assertTrue(all(LINE.fullmatch(line)[3] == "1" for line in self.logs("--rank", "1-7")))
        self.fail_with(program("lockstep", "logs", self.output, "--rank", 5), "has no line of --rank 5, expected some of ranks 0,1", status=1)
        self.assertEqual(len(self.logs("--host", f"elsewhere,{host}")), len(lines))
        self.fail_with(program("lockstep", "logs", self.output, "--host", "elsewhere"), "has no line of --host elsewhere", status=1)

    def test_what_a_kill_or_a_stack_left_does_not_disturb_the_rest(self):
        self.train(1)
        log = self.output / "logs" / "rank-0000.log"
        whole = self.logs()
        with open(log, "ab") as file:
            file.write(b"  /lib/x.so(main+0x12) [0x7f]\n2026-11-22 18:04:06.123 node1 ra")
        lines = self.logs()
        self.assertEqual(lines[:-2], whole)
        self.assertRegex(lines[-2], rf"^ +{re.escape(socket.gethostname())} rank 0 \|   /lib/x.so")
        self.assertTrue(lines[-1].endswith("| 2026-11-22 18:04:06.123 node1 ra"), lines[-1])
        self.train(1)  # another run appends: the line that was cut is ended first
        lines = self.logs()
        self.assertEqual(sum("| 2026-11-22 18:04:06.123 node1 ra" in line for line in lines), 1)
        self.assertEqual(sum(bool(LINE.fullmatch(line)) for line in lines), len(lines) - 2)

    def test_levels_are_chosen(self):
        self.train(1)
        with open(self.output / "logs" / "rank-0000.log", "a") as file:
            file.write("2026-11-22 18:04:06.123 node1 rank 0 warning: [test] careful\n2026-11-22 18:04:06.124 node1 rank 0 error: broken\n")
        self.assertEqual([LINE.fullmatch(line)[5] for line in self.logs("--level", "warning", "--host", "node1")], ["[test] careful", "broken"])
        self.assertEqual([LINE.fullmatch(line)[5] for line in self.logs("--level", "error")], ["broken"])
        # For programs: a line of JSON for each line.
        self.assertEqual([json.loads(line) for line in self.logs("--level", "error", "--json")],
                         [{"time": "2026-11-22 18:04:06.124", "host": "node1", "rank": 0, "level": "error", "text": "broken"}])

    def test_a_run_is_followed(self):
        self.train(1)
        follower = self.start(program("lockstep", "logs", self.output, "--follow", "--rank", "0"))
        try:
            log = self.output / "logs" / "rank-0000.log"
            for line in iter(follower.stdout.readline, ""):
                if "memory: at most" in line:
                    break  # the last one of the run that is over
            with open(log, "a") as file:
                file.write("2026-11-22 18:04:06.123 node1 rank 0 in")
                file.flush()
                file.write("fo: later\n")
            self.assertEqual(follower.stdout.readline(), "2026-11-22 18:04:06.123 node1 rank 0 info: later\n")
            (self.output / "logs" / "node2").mkdir()
            (self.output / "logs" / "node2" / "rank-0000.log").write_text("2026-11-22 18:04:07.000 node2 rank 0 info: new\n")
            self.assertEqual(follower.stdout.readline(), "2026-11-22 18:04:07.000 node2 rank 0 info: new\n")
        finally:
            follower.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(follower).status, -signal.SIGINT)

    def test_what_is_no_run_is_named(self):
        self.fail_with(program("lockstep", "logs", self.scratch / "absent"), "is no folder, expected that of a run", status=1)
        self.fail_with(program("lockstep", "logs", self.scratch), "has no rank-NNNN.log", status=1)
        (self.scratch / "notes.txt").write_text("loss 0.5\nthe end\n")
        self.fail_with(program("lockstep", "logs", self.scratch / "notes.txt"), "has no line of a log, expected a rank's log file", status=1)
        self.train(1)
        for wrong in ("one", "0,x", "0,8-", "0,3-1", "1-2-3"):
            self.fail_with(program("lockstep", "logs", self.output, "--rank", wrong), f"--rank is '{wrong}', expected ranks as 0,8-15", status=2)
        self.fail_with(program("lockstep", "logs", self.output, "--level", "loud"), "--level is 'loud', expected one of trace", status=2)
        self.fail_with(program("lockstep", "logs", self.output, "--rank", "7,8"), "has no line of --rank 7,8, expected some of ranks 0", status=1)
        self.fail_with(program("lockstep", "logs", self.output, "--host", "absent"), "has no line of --host absent, expected some of", status=1)


class Dllogger(LogsTest):
    def test_records_are_those_of_the_metrics(self):
        self.train(2, "--logger", "dllogger", "--seed", 5)
        records = self.dllogger()
        self.assertEqual((records[0]["type"], records[0]["step"]), ("LOG", "PARAMETER"))
        parameters = records[0]["data"]
        self.assertEqual([parameters[k] for k in ("seed", "model", "epochs", "world_size", "total_batch_size")], [5, "mlp", 2, 2, 32])
        units = {r["metric"]: r["metadata"] for r in records if r["type"] == "METADATA"}
        self.assertEqual(units["val.top1"], {"unit": "%", "format": ":.2f"})
        updates = [r for r in records if r["type"] == "LOG" and isinstance(r["step"], list) and len(r["step"]) == 2]
        self.assertEqual([r["step"] for r in updates], [[e, i] for e in range(2) for i in range(1, 4)])
        self.assertEqual([(r["data"]["global_step"], r["data"]["train.loss"]) for r in updates],
                         [(step, float(loss)) for step, loss in metrics(self.output)])
        evaluations = [r for r in records if r["type"] == "LOG" and len(r["step"]) == 1 and "val.loss" in r["data"]]
        self.assertEqual([(r["data"]["global_step"], r["data"]["val.loss"]) for r in evaluations],
                         [(step, float(loss)) for step, loss in metrics(self.output, "eval")])
        self.assertEqual(records[-1]["step"], [])
        self.assertEqual(records[-1]["data"]["val.loss"], evaluations[-1]["data"]["val.loss"])
        for record in records:
            self.assertGreater(float(record["timestamp"]), 1.7e9)
            self.assertGreaterEqual(float(record["elapsedtime"]), 0)

    def test_a_resumed_run_goes_on_with_the_file(self):
        options = ["--logger", "dllogger", "--checkpoint-every-steps", 2]
        self.train(1, *options, "--max-steps", 4)
        checkpoints(self.output)[-1].unlink()  # what came after update 2 is trained again
        self.train(1, *options, "--resume", "auto")
        steps = [r["data"]["global_step"] for r in self.dllogger() if r["type"] == "LOG" and isinstance(r["step"], list) and len(r["step"]) == 2]
        self.assertEqual(steps, list(range(1, 7)))

    def test_without_the_option_there_is_no_file(self):
        self.train(1)
        self.assertFalse((self.output / "dllogger.json").exists())


class DataFolder(LogsTest):
    def setUp(self):
        super().setUp()
        self.data = self.scratch / "data"
        self.succeed(program("lockstep-data", "convert", "digits", "--to", "npy", "--output", self.data, "--limit-train", 96, "--limit-eval", 32))

    def test_the_environment_names_it_and_the_option_wins(self):
        there = clean_environment(LOCKSTEP_DATA_DIR=str(self.data))
        result = self.train(2, "--dataset", "npy", environment=there)
        self.assertIn(f"environment: --data-dir {self.data} is from LOCKSTEP_DATA_DIR", result.stdout)
        elsewhere = clean_environment(LOCKSTEP_DATA_DIR=str(self.scratch / "absent"))
        result = self.train(1, "--dataset", "npy", "--data-dir", self.data, environment=elsewhere)
        self.assertNotIn("environment: ", result.stdout)
        wrong = self.run_command(ranks(2, program("train_mnist", *MLP, "--dataset", "npy", "--output", self.output)), environment=elsewhere)
        self.assertEqual(wrong.status, 1, wrong)
        self.assertEqual(wrong.output.count(f"; --data-dir {self.scratch / 'absent'} is from LOCKSTEP_DATA_DIR"), 1, wrong)

    def test_without_both_the_message_names_both(self):
        wrong = self.run_command(ranks(2, program("train_mnist", *MLP, "--dataset", "npy", "--output", self.output)))
        self.assertEqual(wrong.status, 2, wrong)
        self.assertEqual(wrong.output.count("--data-dir is missing, expected the folder with the files of npy, in this option or in LOCKSTEP_DATA_DIR"), 1, wrong)


if __name__ == "__main__":
    support.main()
