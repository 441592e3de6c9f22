"""What the communication options of a program do: paths that change no bit, hooks that do, and a trace of all ranks."""

import json

import support
from support import checkpoints, program, ranks

TOY = ("--dataset", "digits", "--epochs", 0, "--max-steps", 12, "--global-batch", 30, "--eval-every", 0, "--quiet")


class Paths(support.SystemTest):
    known = None  # the losses of the usual path, trained once for all tests

    def losses(self, name, count, *options):
        output = self.scratch / name
        self.succeed(ranks(count, program("train_toy", *TOY, *options, "--log-every", 1, "--output", output)))
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        return [record["loss"] for record in records if record["split"] == "train"]

    def usual(self):
        if Paths.known is None:
            Paths.known = self.losses("usual", 3)
        return Paths.known

    def test_own_paths_change_no_bit(self):
        usual = self.usual()
        self.assertEqual(len(usual), 12)
        for name, options in {
            "messages": ("--allreduce", "messages"),
            "own": ("--no-share-weights",),
            "shards": ("--allreduce", "messages", "--shard-optimizer"),
            "thread": ("--allreduce", "messages", "--overlap", "thread"),
            "buckets": ("--bucket-mb", 0.01),
            "numa": ("--sharing-domain", "numa"),
            "loose": ("--clip-norm", 1e6),
        }.items():
            self.assertEqual(self.losses(name, 3, *options), usual, name)

    def test_a_narrow_wire_is_the_same_on_every_path(self):
        usual, narrow = self.usual(), self.losses("wire", 3, "--wire", "bf16")
        self.assertNotEqual(narrow, usual)
        self.assertEqual(self.losses("wire-messages", 3, "--wire", "bf16", "--allreduce", "messages"), narrow)

    def test_hooks_train(self):
        usual = self.usual()
        for name, options in {"mpi": ("--allreduce", "mpi"), "topk": ("--topk", 0.2), "local": ("--local-steps", 3)}.items():
            losses = self.losses(name, 3, *options)
            self.assertLess(max(abs(a - b) for a, b in zip(losses, usual)), 0.2, name)
            if name != "mpi":
                self.assertNotEqual(losses, usual, name)

    def test_local_steps_go_on_after_a_resume(self):
        options = ("--local-steps", 4, "--momentum", 0.9, "--checkpoint-every-steps", 3, "--keep", 0)
        usual = self.losses("usual", 3, *options)
        saved = [p for p in checkpoints(self.scratch / "usual") if p.stem.endswith("3")][0]
        resumed = self.losses("resumed", 3, *options, "--resume", saved)
        self.assertEqual(resumed, usual[-len(resumed):])
        self.assertEqual(self.state(checkpoints(self.scratch / "resumed")[-1])["tensors"],
                         self.state(checkpoints(self.scratch / "usual")[-1])["tensors"])

    def test_clipping_limits_the_step(self):
        self.assertNotEqual(self.losses("clip", 3, "--clip-norm", 0.01), self.usual())

    def test_contradictions_are_named(self):
        for options, words in {
            ("--topk", 0.1, "--local-steps", 2): "more than one of --allreduce mpi, --topk and --local-steps",
            ("--allreduce", "mpi", "--shards", 4): "--allreduce mpi",
            ("--allreduce", "mpi", "--wire", "bf16"): "--wire",
        }.items():
            self.fail_with(ranks(2, program("train_toy", *TOY, *options, "--output", self.scratch / "bad")), words)


class Trace(support.SystemTest):
    def test_has_every_rank_on_one_clock(self):
        file = self.scratch / "trace.json"
        output = self.scratch / "run"
        self.succeed(ranks(3, program("train_toy", *TOY, "--allreduce", "messages", "--trace", file, "--trace-steps", 2, "--output", output)))
        events = json.loads(file.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        self.assertEqual({e["pid"] for e in spans}, {0, 1, 2})
        for rank in range(3):
            names = " ".join(e["name"] for e in spans if e["pid"] == rank)
            for word in ("conv", "update bucket 0", "exchange bucket 1", "gather bucket 1", "sum bucket 1", "for the other ranks"):
                self.assertIn(word, names)
            steps = [e for e in spans if e["pid"] == rank and e["name"].startswith("step ")]
            self.assertEqual([(e["name"], e["args"]["step"]) for e in steps], [("step 4", 4), ("step 5", 5)])
            updates = [e for e in spans if e["pid"] == rank and e["name"] == "update bucket 0"]
            self.assertEqual([e["args"]["step"] for e in updates], [4, 5])
            tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == rank}
            self.assertEqual({tracks[e["tid"]] for e in steps}, {"steps"})
            self.assertEqual({tracks[e["tid"]] for e in updates}, {"updates"})
            for event in spans:  # no kernel lies between two steps
                if event["pid"] == rank and tracks[event["tid"]] == "compute":
                    self.assertTrue(any(s["ts"] <= event["ts"] and event["ts"] + event["dur"] <= s["ts"] + s["dur"] for s in steps), event)
        # No rank ends its first update before each has begun to compute: so it looks on clocks that are aligned, to a millisecond.
        begins = [min(e["ts"] for e in spans if e["pid"] == rank) for rank in range(3)]
        updated = [min(e["ts"] + e["dur"] for e in spans if e["pid"] == rank and e["name"].startswith("update bucket")) for rank in range(3)]
        self.assertLess(max(begins), min(updated) + 1e3)
        self.assertTrue(all(e["dur"] >= 0 for e in spans))

    def test_one_rank_has_steps_and_updates_too(self):
        file = self.scratch / "one.json"
        self.succeed(program("train_resnet", "--depth", 20, "--dataset", "digits", "--limit-train", 64, "--limit-eval", 8, "--batch-size", 8, "--epochs", 1,
                             "--max-steps", 8, "--quiet", "--trace", file, "--output", self.scratch / "one"))
        names = [e["name"] for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]
        for step in range(4, 9):
            self.assertEqual(names.count(f"step {step}"), 1)
            self.assertEqual(names.count(f"running statistics of step {step}"), 1)
        self.assertEqual(names.count("update bucket 0"), 5)

    def test_a_short_run_brings_what_there_is(self):
        file = self.scratch / "short.json"
        self.succeed(ranks(2, program("train_toy", *TOY, "--max-steps", 5, "--trace", file, "--output", self.scratch / "short")))
        spans = [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sum(e["name"] == "update bucket 0" for e in spans), 4)  # two updates of two ranks


if __name__ == "__main__":
    support.main()
