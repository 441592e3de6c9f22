"""Faults put into one rank of a real run: the message names the rank, and what can be undone leaves no trace in the weights."""

import json

import support
from support import checkpoints, clean_environment, metrics, program, ranks

MLP = ["--model", "mlp", "--limit-train", 400, "--limit-eval", 100, "--global-batch", 40, "--shards", 4, "--epochs", 2, "--threads", 1,
       "--loaders", 1, "--log-every", 1, "--checkpoint-every", 0, "--checkpoint-every-steps", 5]


class Guards(support.SystemTest):
    def train(self, size, name, *options, fault=None, status=0):
        environment = clean_environment(**({"LOCKSTEP_FAULT": fault} if fault else {}))
        result = self.run_command(ranks(size, program("train_mnist", *MLP, *options, "--output", self.scratch / name)), environment=environment)
        self.assertEqual(result.status, status, result)
        return result

    def expect_the_same(self, name, other):
        one, two = checkpoints(self.scratch / name), checkpoints(self.scratch / other)
        self.assertEqual([p.name for p in one], [p.name for p in two])
        self.assertEqual(self.state(one[-1])["tensors"], self.state(two[-1])["tensors"])
        for split in ("train", "epoch", "eval"):
            self.assertEqual(metrics(self.scratch / name, split), metrics(self.scratch / other, split))


class Memory(Guards):
    def test_repair(self):
        self.train(3, "undisturbed", "--no-share-weights")
        result = self.train(3, "flipped", "--no-share-weights", fault="weights.flip:corrupt:rank=1:at=7")
        self.assertIn("after update 7: rank 1 on ", result.output)
        self.assertIn("repaired from a copy; update 8 is repeated", result.output)
        self.expect_the_same("flipped", "undisturbed")
        result = self.train(2, "state", "--no-share-weights", fault="state.flip:corrupt:rank=1:at=13")
        self.assertIn("after update 13: rank 1 on ", result.output)
        self.assertIn(": momentum of ", result.output)
        self.expect_the_same("state", "undisturbed")

    def test_roll_back(self):
        self.train(2, "undisturbed")
        for name, at, back in (("early", 8, 5), ("late", 17, 15), ("epoch", 12, 10)):
            result = self.train(2, name, fault=f"weights.flip:corrupt:rank=1:at={at}:once={self.scratch}/{name}.once")
            self.assertIn(f"after update {at}: rank 1 on ", result.output)
            self.assertIn(f"rolled back to update {back}", result.output)
            self.expect_the_same(name, "undisturbed")

    def test_roll_back_into_the_epoch_before(self):
        self.train(2, "undisturbed", "--checkpoint-every-steps", 8)
        result = self.train(2, "flipped", "--checkpoint-every-steps", 8, fault=f"weights.flip:corrupt:rank=0:at=13:once={self.scratch}/once")
        self.assertIn("rolled back to update 8", result.output)
        self.expect_the_same("flipped", "undisturbed")

    def test_damage_that_a_checkpoint_finds(self):
        self.train(2, "undisturbed")
        for name, at, back in (("within", 15, 10), ("epoch", 10, 5), ("end", 20, 15)):
            result = self.train(2, name, fault=f"weights.flip:corrupt:rank=1:at={at}:once={self.scratch}/{name}.once")
            self.assertIn(f"after update {at}: rank 1 on ", result.output)
            self.assertIn(f"rolled back to update {back}", result.output)
            self.expect_the_same(name, "undisturbed")
        self.train(2, "copies", "--no-share-weights")
        result = self.train(2, "repaired", "--no-share-weights", fault="weights.flip:corrupt:rank=1:at=10")
        self.assertIn("repaired from a copy", result.output)
        self.expect_the_same("repaired", "copies")

    def test_late_damage_is_rolled_back(self):
        self.train(2, "undisturbed")
        result = self.train(2, "flipped", fault=f"weights.flip.late:corrupt:rank=1:at=8:once={self.scratch}/once")
        self.assertIn("after update 8: rank 1 on ", result.output)
        self.assertIn("rolled back to update 5", result.output)
        self.expect_the_same("flipped", "undisturbed")

    def test_stop(self):
        for options, at in ((["--on-mismatch", "stop"], 8), ([], 3)):  # asked for; without a checkpoint yet
            result = self.train(2, "run", *options, fault=f"weights.flip:corrupt:rank=1:at={at}", status=77)
            self.assertIn(f"[memory] after update {at}: rank 1 on ", result.output)
            self.expect_no_process()

    def test_a_suspect_that_computes_wrongly(self):
        result = self.train(3, "run", "--no-share-weights", status=77,
                            fault="weights.flip:corrupt:rank=2:at=7 weights.flip:corrupt:rank=2:at=9 product.wrong:corrupt:rank=2")
        self.assertIn("[product] rank 2 on ", result.output)
        self.assertIn(" computes wrongly: its hash of the known product is ", result.output)


class Samples(Guards):
    def test_not_a_number_stops(self):
        for size in (1, 2, 4):
            result = self.train(size, f"run{size}", fault=f"batch.nan:corrupt:rank={size - 1}:at=6", status=77)
            self.assertIn("[guard] update 6: the loss is ", result.output)
            self.assertIn(f"; rank {size - 1} on ", result.output)
            self.assertIn(": 'image' of sample ", result.output)
            self.assertNotIn("diverged", result.output)

    def test_a_rate_that_is_too_large(self):
        for size in (1, 2):
            result = self.train(size, f"run{size}", "--lr", 1e12, status=77)
            self.assertIn("training may have diverged: try a lower learning rate (--lr) or gradient clipping (--clip-norm)", result.output)

    def test_what_does_not_happen_again_is_done_again(self):
        self.train(2, "undisturbed")
        result = self.train(2, "once", fault=f"batch.nan:corrupt:rank=1:at=6:once={self.scratch}/fired")
        self.assertIn("all values are finite when computed again, so the update is repeated", result.output)
        self.assertIn("product: rank 1 on ", result.output)
        self.expect_the_same("once", "undisturbed")

    def test_skipping(self):
        # All four shards are damaged, so that the same samples are at any number of ranks.
        found = []
        for size in (1, 2):
            result = self.train(size, f"run{size}", "--guard-action", "skip", "--guard-spike", 20, fault="batch.nan:corrupt:at=6")
            self.assertEqual(result.output.count("update 6 is skipped"), 1)
            self.assertIn("guard: 1 update of this run was skipped", result.output)
            records = [json.loads(line) for line in (self.scratch / f"run{size}" / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual([(r["step"] > 5, r.get("skipped", 0)) for r in records if r["split"] == "train"],
                             [(step > 5, int(step > 5)) for step in range(1, 21)])
            found.append((self.state(checkpoints(self.scratch / f"run{size}")[-1])["tensors"], metrics(self.scratch / f"run{size}", "eval")))
        self.assertIn("guard/norms", found[0][0])
        self.assertEqual(found[0], found[1])

    def test_a_spike(self):
        result = self.train(3, "run", "--guard-norm", 100, fault="gradient.spike:corrupt:rank=1:at=6", status=77)
        self.assertIn("[guard] update 6: the gradient has norm ", result.output)
        self.assertIn(" and comes from rank 1 on ", result.output)


if __name__ == "__main__":
    support.main()
