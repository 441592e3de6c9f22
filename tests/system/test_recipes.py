"""The recipes run as their own first lines say, --resize trains on larger images, and --unused names what nothing reads."""

import json
import math
import unittest

import recipes
import support
from support import SOURCE, SystemTest, metrics, program, ranks

MLP = ["--model", "mlp", "--dataset", "digits", "--limit-train", 64, "--limit-eval", 32, "--global-batch", 32, "--epochs", 2, "--threads", 1,
       "--loaders", 0, "--log-every", 1]


class Files(unittest.TestCase):
    def test_there_are_the_twelve(self):
        self.assertEqual([file.stem for file in recipes.FILES],
                         ["darcy_fno", "darcy_unet", "gaussian_cosmoflow", "gpt_corpus", "lenet_cifar10", "lennard_jones_forces", "lorenz_encoder", "lorenz_lstm",
                          "mnist_mlp_unused", "resnet50_cifar10", "synthetic_clicks", "vit_cifar10"])

    def test_each_shows_its_own_command(self):
        for recipe in recipes.FILES:
            words = recipes.command_of(recipe)
            self.assertEqual(words[-2:], ["--config", str(recipe.relative_to(SOURCE))])
            self.assertTrue((SOURCE / "models" / f"{recipes.program_of(recipe)}.cpp").exists(), recipe)
            self.assertIn(recipe.name, (SOURCE / "docs" / "recipes.md").read_text())


class Shortened(SystemTest):
    def parameters(self, output):
        first = (output / "dllogger.json").read_text().splitlines()[0]
        return json.loads(first.removeprefix("DLLL "))["data"]

    def data(self, recipe):
        """Options of the recipe's data set, which are computed here if the recipe says how."""
        folder = self.scratch / f"{recipe.stem}-data"
        command = recipes.generate_command(recipe, folder, 120)
        if command is None:
            return recipes.data_options(recipe)
        folder.mkdir()
        self.succeed(command)
        return ["--data-dir", folder]

    def test_each_recipe_trains_with_its_options(self):
        for recipe in recipes.FILES:
            with self.subTest(recipe=recipe.name):
                output = self.scratch / recipe.stem
                small = ["--resize", 64] if "resize" in recipes.values_of(recipe) else []
                words = recipes.shortened(recipe, 4, 2, "--output", output, *small, data=self.data(recipe))
                self.succeed(ranks(2, program(recipes.program_of(recipe), *words)))
                losses = [float(loss) for _, loss in metrics(output)]
                self.assertEqual(len(losses), 2)
                self.assertTrue(all(math.isfinite(loss) for loss in losses), losses)
                given = {str(word).removeprefix("--") for word in words if str(word).startswith("--")}
                used = self.parameters(output)
                for key, value in recipes.values_of(recipe).items():
                    if key not in given:
                        self.assertEqual(used[key], value, key)


class Forces(SystemTest):
    def setUp(self):
        super().setUp()
        self.succeed(program("lockstep-data", "generate", "lennard-jones", "--samples", 90, "--atoms", 4, "--output", self.scratch / "clusters.h5"))

    def command(self, output, *more):
        return program("train_forces", "--files", self.scratch / "clusters.h5", "--width", 16, "--epochs", 2, "--global-batch", 12, "--shards", 4, "--threads", 1,
                       "--schedule", "constant", "--warmup-epochs", 0, "--output", self.scratch / output, *more)

    def weights(self, output):
        return self.state(max((self.scratch / output / "checkpoints").glob("step-*.h5")))["tensors"]

    def test_the_bits_do_not_depend_on_ranks_or_stops(self):
        for count in (1, 3):
            self.succeed(ranks(count, self.command(f"ranks{count}")))
        self.assertEqual(self.weights("ranks3"), self.weights("ranks1"))
        self.succeed(ranks(2, self.command("parts", "--max-steps", 4, "--checkpoint-every-steps", 1)))
        self.succeed(ranks(1, self.command("parts", "--resume", "auto")))
        self.assertEqual(self.weights("parts"), self.weights("ranks1"))
        lines = [json.loads(line) for line in (self.scratch / "ranks1" / "metrics.jsonl").read_text().splitlines()]
        evaluations = [line for line in lines if line["split"] == "eval"]
        self.assertTrue(evaluations and all({"force_mae", "force_r2", "energy_mae"} <= line.keys() for line in evaluations), lines)

    def test_mistakes_are_named(self):
        for more, text in ((("--targets", "energies"), "--targets is 'energies'"), (("--targets", "forces,energies"), "expected (atoms, 3), () and (atoms, 3)"),
                           (("--normalise", "standard"), "forces would be no derivatives of energies"), (("--radial", 1), "--radial 1")):
            with self.subTest(more):
                result = self.run_command(ranks(2, self.command("wrong", *more)), 60)
                self.assertNotEqual(result.status, 0, result)
                self.assertIn(text, result.output)
                self.expect_no_process()


class Resize(SystemTest):
    def train(self, name, *options, size=1):
        command = program("train_toy", "--dataset", "digits", "--limit-train", 64, "--limit-eval", 32, "--global-batch", 32, "--epochs", 2,
                          "--threads", 1, "--loaders", 0, "--log-every", 1, "--output", self.scratch / name, *options)
        return ranks(size, command)

    def test_the_model_and_the_evaluation_follow(self):
        result = self.succeed(self.train("large", "--resize", 40, "--augment"))
        self.assertIn("images resized to (1, 40, 40)", result.stdout)
        self.assertEqual(len(metrics(self.scratch / "large", "eval")), 2)
        checkpoint = sorted((self.scratch / "large" / "checkpoints").iterdir())[-1]
        # LeNet's first linear layer reads 16 maps of 7 x 7, where images of 28 x 28 leave 4 x 4.
        self.assertIn(f"({120}, {16 * 7 * 7})", self.succeed(program("lockstep", "checkpoint", checkpoint)).stdout)

    def test_the_bits_do_not_depend_on_ranks(self):
        for size in (1, 2):
            self.succeed(self.train(f"ranks{size}", "--resize", 33, "--augment", "--shards", 2, size=size))
        self.assertEqual(metrics(self.scratch / "ranks1"), metrics(self.scratch / "ranks2"))

    def test_a_resume_needs_the_same_size(self):
        self.succeed(self.train("run", "--resize", 40, "--max-steps", 2))
        self.fail_with(self.train("run", "--resume", "auto"), "--resize was 40, this run has 0: images of another size are other samples")
        self.succeed(self.train("run", "--resume", "auto", "--resize", 40))


class Unused(SystemTest):
    def test_parameters_that_nothing_reads_are_named(self):
        result = self.fail_with(ranks(2, program("train_mnist", *MLP, "--unused-layer", "--output", self.scratch / "run")),
                                "the loss does not depend on 2 trainable parameters: unused.weight, unused.bias")
        self.assertIn("--unused ignore", result.output)

    def test_or_keep_their_values(self):
        command = program("train_mnist", *MLP, "--unused-layer", "--unused", "ignore", "--output", self.scratch / "run")
        self.succeed(ranks(2, [*command, "--max-steps", 1]))
        files = sorted((self.scratch / "run" / "checkpoints").iterdir())
        first = self.state(files[-1])
        self.succeed(ranks(1, [*command, "--resume", "auto", "--checkpoint-every-steps", 4]))
        last = self.state(sorted((self.scratch / "run" / "checkpoints").iterdir())[-1])
        tensors = {name: (first["tensors"][name], last["tensors"][name]) for name in first["tensors"]}
        changed = {name for name, (before, after) in tensors.items() if before != after}
        self.assertIn("model/unused.weight", tensors)
        self.assertFalse({name for name in tensors if name.startswith("optimizer/") and "unused" in name})
        self.assertNotIn("model/unused.weight", changed)
        self.assertIn("model/0.weight", changed)


if __name__ == "__main__":
    support.main()
