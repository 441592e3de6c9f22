"""Ranks of one node that make different numbers of calls, in a program of a user's own without a Session: the ranks that wait say within seconds
which rank has left, and the job ends."""


import support
from support import program, ranks

# A rank that waits takes a second or two to say so; a limit of the test's own tells it from one that waits for ever.
LIMIT = 100


class UnevenTest(support.SystemTest):
    def run_uneven(self, way, what, counts, *ranks_of_node):
        command = program("system_uneven", way, what, ",".join(map(str, counts)), self.scratch, *ranks_of_node)
        return self.run_command(ranks(len(counts), command), LIMIT)

    def fails(self, way, what, counts, *ranks_of_node, unit="update"):
        with self.subTest(way, what=what, counts=counts):
            result = self.run_uneven(way, what, counts, *ranks_of_node)
            self.assertNotEqual(result.status, 0, result)
            least = min(counts)
            left = [rank for rank, count in enumerate(counts) if count == least]
            said = [rank for rank in left if f"rank {rank} has left after {unit} {least}" in result.stderr]
            self.assertTrue(said, result)
            self.assertIn("expected the same number", result.stderr, result)
            self.expect_no_process()
            return result


class Equal(UnevenTest):
    def test_calls_that_are_as_many(self):
        kinds = ("step", "apart", "thread", "evaluate", "state", "gradient", "hashes", "short", "long")
        for size in (1, 2, 3):
            result = self.run_uneven("guarded", ",".join(kinds), size * [5])
            self.assertEqual(result.status, 0, result)
            for what in kinds:
                self.assertEqual(result.stdout.count(f" made 5 of {what}\n"), size, result)


class Steps(UnevenTest):
    def test_in_a_guard(self):
        for counts in ((5, 6), (6, 5), (5, 6, 6), (6, 5, 6), (5, 5, 6), (6, 5, 5), (5, 6, 6, 6), (6, 6, 5, 6), (5, 5, 5, 6)):
            result = self.fails("guarded", "step", counts)
            self.assertEqual(result.status, 1, result)
            said = [line for line in result.stderr.splitlines() if line.startswith("system_uneven: ")]
            self.assertTrue(all("has left after update 5" in line or "has failed" in line for line in said), result)

    def test_with_an_exception_that_nobody_catches(self):
        for counts in ((5, 6), (6, 5), (6, 5, 6), (5, 5, 5, 6)):
            self.fails("bare", "step", counts)

    # The Trainer of the rank that throws is destroyed while others are gone.
    def test_with_an_exception_that_is_caught(self):
        for counts in ((5, 6), (6, 5), (6, 5, 6), (5, 5, 5, 6)):
            self.fails("caught", "step", counts)


class Kinds(UnevenTest):
    def test_of_other_kinds_of_training(self):
        for what in ("apart", "thread"):
            for counts in ((5, 6), (6, 5, 6)):
                self.fails("guarded", what, counts)

    # A rank is missed by those of its own node; the job's end then reaches the others.
    def test_of_ranks_on_two_nodes(self):
        for counts in ((5, 6, 6, 6), (6, 6, 5, 6), (5, 6, 6, 5)):
            self.fails("guarded", "step", counts, 2)

    def test_of_an_allreduce(self):
        for what in ("short", "long"):
            for counts in ((5, 6), (6, 5), (6, 5, 6)):
                self.fails("guarded", what, counts, unit="call")


class Between(UnevenTest):
    def test_between_steps(self):
        for what in ("evaluate", "state", "gradient", "hashes"):
            for counts in ((0, 1), (1, 0, 1)):
                with self.subTest(what, counts=counts):
                    result = self.run_uneven("guarded", what, counts)
                    self.assertEqual(result.status, 1, result)
                    self.assertIn(f"rank {counts.index(0)} has left after update 1", result.stderr, result)
                    self.expect_no_process()

    # Nobody has left: a watchdog alone can tell.
    def test_that_wait_for_each_other(self):
        for counts in ((0, 1), (1, 0), (0, 1, 1)):
            with self.subTest(counts=counts):
                result = self.run_uneven("guarded", "crossed", counts)
                self.assertEqual(result.status, 76, result)
                self.assertIn("all ranks have waited for each other for ", result.output)
                self.assertRegex(result.output, r"in different calls: rank 0 .*, rank \d .*; expected the same calls", result)
                self.expect_no_process()


class Returned(UnevenTest):
    def test_of_a_body_that_returns_on_some_ranks(self):
        for size, first in ((2, 1), (4, 2)):
            with self.subTest(ranks=size, first=first):
                command = program("system_leaves", "--from", first, "--output", self.scratch / f"some{size}")
                result = self.run_command(ranks(size, command), LIMIT)
                self.assertEqual(result.status, 1, result)
                self.assertRegex(result.output, rf"the program has returned on rank [{first}-{size - 1}] on host .* after step 3, while rank")
                self.expect_no_process()

    def test_of_a_body_that_returns_on_all_ranks(self):
        for size in (1, 3):
            self.succeed(ranks(size, program("system_leaves", "--output", self.scratch / f"all{size}")))


if __name__ == "__main__":
    support.main()
