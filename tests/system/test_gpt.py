"""train_gpt and generate: the bits at any number of ranks and over stops, text by its seed, mistakes in one message."""

import json
import subprocess

import support
from support import LIMIT, SystemTest, clean_environment, metrics, program, ranks

SIZE = ["--layers", 1, "--heads", 2, "--width", 16, "--context", 24]


class Gpt(SystemTest):
    def command(self, output, *more):
        return program("train_gpt", *SIZE, "--corpus-samples", 60, "--limit-eval", 5, "--dropout", 0.1, "--epochs", 2, "--global-batch", 12, "--shards", 4,
                       "--threads", 1, "--log-every", 0, "--schedule", "constant", "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def weights(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))["tensors"]

    def text(self, *arguments):
        """What generate writes: bytes, as a model that has learnt little writes any."""
        done = subprocess.run(program("lockstep", "generate", *arguments), capture_output=True, timeout=LIMIT, env=clean_environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_bits_do_not_depend_on_ranks_or_stops(self):
        for count in (1, 3):
            self.succeed(ranks(count, self.command(f"ranks{count}")))
        self.assertEqual(self.weights("ranks3"), self.weights("ranks1"))
        for split in ("eval", "epoch"):
            losses = metrics(self.scratch / "ranks1", split)
            self.assertEqual(len(losses), 2, f"losses of {split}, expected one for each epoch")
            self.assertEqual(metrics(self.scratch / "ranks3", split), losses)
        self.succeed(ranks(2, self.command("parts", "--max-steps", 7, "--checkpoint-every-steps", 1)))
        self.succeed(ranks(1, self.command("parts", "--resume", "auto")))
        self.assertEqual(self.weights("parts"), self.weights("ranks1"))
        lines = [json.loads(line) for line in (self.scratch / "ranks1" / "metrics.jsonl").read_text().splitlines()]
        evaluations = [line for line in lines if line["split"] == "eval"]
        self.assertTrue(evaluations and all({"perplexity", "bits_per_byte", "accuracy", "entropy_gap"} <= line.keys() for line in evaluations), lines)

    def test_the_ways_of_a_model_train(self):
        ways = {"llama": ("--positions", "rotary", "--norm", "rms", "--mlp", "swiglu", "--key-heads", 1, "--no-bias", "--untied"),
                "alibi": ("--positions", "alibi", "--recompute", "blocks"), "bf16": ("--precision", "bf16-emulated")}
        for name, options in ways.items():
            self.succeed(ranks(2, self.command(name, "--max-steps", 2, *options)))
        self.assertEqual(self.text(self.scratch / "llama", "--tokens", 40), self.text(self.scratch / "llama", "--tokens", 40))

    def test_text_of_files_and_its_continuation(self):
        text = self.scratch / "text.txt"
        text.write_text("the cat and the dog<|endoftext|>and the bird\n" * 40)
        others = iter(range(256, 512))
        vocabulary = {chr(b if 33 <= b <= 126 or b >= 161 and b != 173 else next(others)): b for b in range(256)}
        vocabulary |= {"th": 256, "the": 257, "<|endoftext|>": 258}
        (self.scratch / "vocab.json").write_text(json.dumps(vocabulary))
        (self.scratch / "merges.txt").write_text("#version: 0.2\nt h\nth e\n")
        base = ["--dataset", "text", "--text", text, "--vocabulary", self.scratch / "vocab.json"]
        self.succeed(ranks(2, self.command("files", *base)))
        result = self.succeed(program("lockstep", "evaluate", self.scratch / "files", "--eval-text", text))
        self.assertIn("perplexity", result.output)

        def generate(*more):
            return self.text(self.scratch / "files", "--prompt", "the", "--tokens", 60, *more)
        self.assertTrue(generate().startswith(b"the"))
        self.assertEqual(generate("--seed", 5), generate("--seed", 5))
        self.assertNotEqual(generate("--seed", 5), generate("--seed", 6))
        self.assertEqual(generate("--temperature", 0), generate("--temperature", 0, "--seed", 9))
        answer = json.loads(generate("--json"))
        self.assertEqual(list(answer), ["prompt", "text", "tokens", "prompt_tokens", "seconds"])
        self.assertEqual((answer["prompt"], answer["prompt_tokens"]), ("the", 2))
        self.assertTrue(0 < answer["tokens"] <= 60 and answer["seconds"] > 0, answer)
        (self.scratch / "merges.txt").write_text("#version: 0.2\nt h\n")  # as many tokens, but other ones for the same text
        for other in (program("lockstep", "generate", self.scratch / "files"), program("lockstep", "evaluate", self.scratch / "files")):
            self.fail_with(other, "is not the one with which the model was trained")
        self.fail_with(ranks(2, self.command("files", *base, "--resume", "auto")), "has the vocabulary's file changed?")
        (self.scratch / "merges.txt").write_text("#version: 0.2\nt h\nth")
        self.fail_with(ranks(2, self.command("cut", *base)), "line 3 has no end: the file is cut short")

    def test_mistakes_are_named(self):
        offered = self.succeed(program("train_gpt", "--help")).stdout
        self.assertIn("  --label-smoothing", offered)
        self.assertNotIn("  --augment", offered)
        for more, text in ((("--dataset", "text"), "--text is missing"), (("--resize", 8), "unknown option --resize"), (("--heads", 3), "3 heads do not divide the width 16"),
                           (("--text", "x.txt"), "--text, --eval-text and --vocabulary are for --dataset text")):
            with self.subTest(more):
                self.fail_with(ranks(2, self.command("wrong", *more)), text)
        self.fail_with(program("lockstep", "generate", self.scratch / "nothing"), "nothing")
        self.fail_with(program("lockstep", "generate", self.scratch / "nothing", "--top-p", 0), "top-p is 0", status=2)


if __name__ == "__main__":
    support.main()
