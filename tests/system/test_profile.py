"""--profile: a table of where the steps' time went, once, whatever the number of ranks."""


import support
from support import program, ranks

TINY = ["--model", "mlp", "--limit-train", 256, "--limit-eval", 64, "--global-batch", 64, "--epochs", 2, "--loaders", 0]


class Table(support.SystemTest):
    def train(self, *arguments):
        return self.succeed(ranks(2, program("train_mnist", *TINY, "--output", self.scratch / "run", *arguments))).stdout

    def test_it_is_printed_once_at_the_end(self):
        output = self.train("--profile")
        self.assertEqual(output.count("profile of rank 0: 6 steps of "), 1, output)  # of 8: the first two are cold
        table = output[output.index("profile of rank 0"):].splitlines()
        starts = [line.split()[0] for line in table if line.strip()]
        for name in ("linear", "linear_backward_weights", "cross_entropy", "waiting", "update,", "other"):
            self.assertIn(name, starts, output)
        self.assertTrue(any("peaks measured" in line and "GB/s (triad)" in line for line in table), output)
        self.assertLessEqual(max(map(len, table)), 120, output)

    def test_without_it_there_is_none(self):
        self.assertNotIn("profile", self.train())


if __name__ == "__main__":
    support.main()
