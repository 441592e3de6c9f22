"""`lockstep compare`: where two runs part, by their hash logs and checkpoints, and what may be the cause."""

import json
import shutil
import tempfile
from pathlib import Path

import support
from support import checkpoints, program, ranks

MLP = ["--model", "mlp", "--limit-train", 320, "--limit-eval", 32, "--global-batch", 64, "--epochs", 0, "--schedule", "constant", "--lr", 0.05,
       "--threads", 1, "--loaders", 0, "--eval-every", 0, "--checkpoint-every", 0, "--checkpoint-every-steps", 4, "--keep", 0, "--quiet"]


class Runs(support.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.kept = Path(tempfile.mkdtemp(prefix="lockstep-compare-"))
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)

    def usual(self):
        """A run without more options: trained once for all tests, of which each has a copy."""
        if not (self.kept / "a").exists():
            shutil.copytree(self.train("a"), self.kept / "a")
            shutil.rmtree(self.scratch / "a")
        return Path(shutil.copytree(self.kept / "a", self.scratch / "a"))

    def train(self, name, *options, steps=8, hashed=1):
        output = self.scratch / name
        self.succeed(program("train_mnist", *MLP, "--max-steps", steps, "--hash-every", hashed, *options, "--output", output))
        return output

    def compare(self, left, right, status):
        text = self.run_command(program("lockstep", "compare", left, right))
        self.assertEqual(text.status, status, text)
        result = self.run_command(program("lockstep", "compare", "--json", left, right))
        self.assertEqual(result.status, status, result)
        return text.stdout, json.loads(result.stdout)

    def steps(self, output):
        return [json.loads(line)["step"] for line in (output / "hashes.jsonl").read_text().splitlines()]

    def test_equal_runs(self):
        text, found = self.compare(self.usual(), self.train("b"), 0)
        self.assertEqual(text, "equal: 9 steps by their hashes, 2 checkpoints bit by bit\n")
        self.assertEqual((found["equal"], found["hashed_steps"], found["checkpoints"], found["unknown"]), (True, 9, 2, []))

    def test_of_equal_runs_one_may_go_further(self):
        left, right = self.usual(), self.train("b", steps=12)
        text, found = self.compare(left, right, 0)
        ends = f"what follows step 8: {left} ends there, {right} goes on to step 12"
        self.assertEqual((found["equal"], found["unknown"]), (True, [ends]))
        self.assertIn(f"\nnot known: {ends}\n", text)

    def test_another_seed_shows_before_the_first_step(self):
        text, found = self.compare(self.train("a", "--seed", 1), self.train("b", "--seed", 2), 1)
        self.assertEqual((found["first_step"], found["hashes"]["step"]), (0, 0))
        self.assertNotIn("last_equal_step", found)
        self.assertIn("--seed: 1 in the first, 2 in the second", found["causes"])
        self.assertTrue(text.startswith("differ at step 0, the first that could be compared\n"), text)
        # Values are known from the first checkpoint of both; weights differ all over.
        self.assertEqual(found["checkpoint"]["step"], 4)
        first = next(t for t in found["checkpoint"]["tensors"] if t["name"].endswith("weight"))
        self.assertEqual(first["index"], [0, 0])
        self.assertGreater(first["elements"], first["of"] // 2)
        self.assertGreater(first["ulp"], 0)

    def test_another_rate_from_step_four_on(self):
        left, right = self.usual(), self.train("b", steps=4)
        self.assertEqual(self.steps(right), list(range(5)))
        self.train("b", "--lr", 0.06, "--resume", "auto")
        self.assertEqual(self.steps(right), list(range(9)))
        text, found = self.compare(left, right, 1)
        self.assertEqual((found["last_equal_step"], found["first_step"], found["checkpoint"]["step"]), (4, 5, 8))
        self.assertIn("--lr: 0.05 in the first, 0.06 in the second", found["causes"])
        self.assertTrue(text.startswith("differ at step 5, equal at step 4\n"), text)
        self.assertIn("\n  --lr: 0.05 in the first, 0.06 in the second\n", text)

    def test_what_cannot_change_bits_is_no_cause(self):
        sharded = ["--shards", 4]
        left = self.train("a", *sharded)
        other = ["--allreduce", "messages", "--overlap", "steps", "--bucket-mb", 1, "--no-share-weights", "--log-every", 3, "--keep", 9]
        _, found = self.compare(left, self.train("b", *sharded, *other, "--seed", 2, "--eval-every", 1), 1)
        self.assertEqual([cause.split(":")[0] for cause in found["causes"]], ["--seed", "seed"])
        # Other shards: whatever differs may be the cause, but what is only written.
        _, found = self.compare(left, self.train("c", "--shards", 2, *other), 1)
        names = {cause.split(":")[0] for cause in found["causes"]}
        self.assertLessEqual({"--shards", "--allreduce", "--overlap", "--bucket-mb", "--no-share-weights"}, names)
        self.assertFalse(names & {"--log-every", "--keep", "evaluation"})

    def test_which_run_it_was_is_no_cause(self):
        # Other ids, places, lengths and numbers of ranks (shards are equal), and the same bits: nothing has a cause.
        left, right = self.train("a", "--shards", 2), self.scratch / "b"
        self.succeed(ranks(2, program("train_mnist", *MLP, "--max-steps", 8, "--hash-every", 1, "--shards", 2, "--limit-eval", 16,
                                      "--label-smoothing", 0, "--step-gamma", 0.5, "--schedule", "step", "--output", right)))
        self.assertNotEqual(json.loads((left / "run.json").read_text()), json.loads((right / "run.json").read_text()))
        _, found = self.compare(left, right, 0)
        self.assertEqual(found["causes"], [], "of runs that are equal")
        # Of what differs, the cause is what was asked for alone, also where files of two steps are compared.
        other = self.train("c", "--shards", 2, "--lr", 0.06)
        _, found = self.compare(checkpoints(left)[0], checkpoints(other)[1], 1)
        self.assertEqual(found["causes"], ["--lr: 0.05 in the first, 0.06 in the second"])

    def test_resuming_takes_later_lines_out(self):
        left = self.usual()
        right = self.scratch / "b"
        shutil.copytree(left, right)
        before = (left / "hashes.jsonl").read_bytes()
        (right / "hashes.jsonl").write_bytes(before + b'{"step":9,"tens')  # a kill cut this line short
        self.train("b", "--resume", checkpoints(right)[0])  # of step 4
        self.assertEqual((right / "hashes.jsonl").read_bytes(), before)
        self.compare(left, right, 0)
        self.train("b", hashed=0)  # a new run: the old log is not its own
        self.assertFalse((right / "hashes.jsonl").exists())
        self.assertEqual((right / "hashes.1.jsonl").read_bytes(), before)

    def test_one_flipped_bit(self):
        left = self.usual()
        right = self.scratch / "b"
        shutil.copytree(left, right)
        tensors = self.state(checkpoints(right)[1])["tensors"]
        name = next(n for n in tensors if n.startswith("model/") and n.endswith("weight"))
        columns = int(tensors[name].split("(")[1].split(")")[0].split(",")[1])
        self.succeed(program("system_state", checkpoints(right)[1], name, 2 * columns + 3))
        for this, that in ((left, right), (checkpoints(left)[1], checkpoints(right)[1]), (left, checkpoints(right)[1])):
            text, found = self.compare(this, that, 1)
            self.assertEqual(found["first_step"], 8)
            self.assertEqual([t["name"] for t in found["checkpoint"]["tensors"]], [name])
            tensor = found["checkpoint"]["tensors"][0]
            self.assertEqual((tensor["index"], tensor["ulp"], tensor["elements"]), ([2, 3], 1, 1))
            self.assertEqual(found["causes"], [])
            self.assertIn(f"{name}[2, 3]: ", text)
            self.assertIn(" 1 ulp apart; 1 of ", text)

    def test_what_is_not_known_is_said(self):
        left, right = self.train("a", steps=4), self.train("b", "--seed", 2, steps=3)
        (right / "hashes.jsonl").unlink()
        text, found = self.compare(left, right, 2)
        self.assertTrue(text.startswith("nothing to compare\n"), text)
        self.assertIn("has no hashes.jsonl", text)
        self.assertIn("no checkpoint of a common step: ", text)
        self.assertIn("b has those of step 3", text)
        for missing in (self.scratch / "absent", self.scratch):
            self.assertEqual(self.run_command(program("lockstep", "compare", left, missing)).status, 2)
        damaged = checkpoints(left)[0]
        damaged.write_bytes(damaged.read_bytes()[:-7])
        result = self.run_command(program("lockstep", "compare", left, left))
        self.assertIn("cut short", result.stdout)
        self.assertEqual(result.status, 0, result)  # the hash logs agree


class Revisions(support.SystemTest):
    """scripts/compare_revisions.py, with builds that are there."""

    def compare(self, new, only, status):
        command = [support.SOURCE / "scripts" / "compare_revisions.py", "--builds", support.BIN, new, "--only", only]
        result = self.run_command(command, 200)
        self.assertEqual(result.status, status, result)
        return result.stdout

    def test_one_build_computes_the_same_bits_and_another_seed_does_not(self):
        only = "^mlp x2 (wire-bf16$|topk)"
        self.assertIn("2 runs in ", self.compare(support.BIN, only, 0))
        other = self.scratch / "bin"
        other.mkdir()
        (other / "lockstep").symlink_to(support.BIN / "lockstep")
        (other / "train_mnist").write_text(f'#!/bin/sh\nexec "{support.BIN}/train_mnist" "$@" --seed 5\n')
        (other / "train_mnist").chmod(0o755)
        text = self.compare(other, only, 1)
        self.assertEqual(text.count("differs: step 0, "), 2, text)
        self.assertIn("--seed: 1 in the first, 5 in the second", text)

    def test_a_program_that_fails_is_no_difference(self):
        other = self.scratch / "bin"
        other.mkdir()
        (other / "train_toy").write_text("#!/bin/sh\necho it has no such option >&2\nexit 2\n")
        (other / "train_toy").chmod(0o755)
        text = self.compare(other, "^lenet x1$", 2)
        self.assertIn("it has no such option", text)
        self.assertIn("0 equal, 0 differ, 1 failed", text)
        self.compare(other, "no such run", 2)


if __name__ == "__main__":
    support.main()
