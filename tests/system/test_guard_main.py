"""A program of a user's own in the frame of train::guard_main(): whatever it throws ends all ranks soon, with one line of ours, the right status
and no stack."""


import support
from support import program, ranks

NO_TAPE = "[tape] no such tape"


class Errors(support.SystemTest):
    def fails(self, how, sizes, message, status=1):
        """`message` comes, and no other line of the program.

        Rank 0 says it first, and its end ends the other ranks. On a loaded machine mpirun may end them so late that
        they say it too.
        """
        for size in sizes:
            with self.subTest(how, ranks=size):
                # The scratch folder in the command line is how left processes are found.
                result = self.run_command(ranks(size, program("system_guarded", how, self.scratch)))
                self.assertEqual(result.status, status, result)
                said = [line for line in result.stderr.splitlines() if line.startswith("system_guarded: ")]
                self.assertTrue(1 <= len(said) <= size, result)
                self.assertTrue(all(message in line for line in said), result)
                for noise in ("terminate called", "*** Process received signal", "Signal: Aborted"):
                    self.assertNotIn(noise, result.output)
                self.expect_no_process()

    def test_without_an_error(self):
        for size in (1, 2):
            self.assertIn("trained", self.succeed(ranks(size, program("system_guarded", "", self.scratch))).stdout)

    def test_of_all_ranks_alike(self):
        self.fails("alike", (1, 2, 4), NO_TAPE)
        self.fails("together", (2, 4), NO_TAPE)
        self.fails("command-line", (1, 2), "[command line] no tape is named", status=2)

    def test_of_one_rank(self):
        self.fails("one", (1,), "rank 0 on host")
        self.fails("one", (2, 3), NO_TAPE)
        self.fails("odd", (2, 4), NO_TAPE)

    def test_in_the_middle_of_training(self):
        self.fails("middle", (1, 3), "cannot go on")
        self.fails("callback", (1, 2), "std::out_of_range: sample 20 is beyond the tape")
        self.fails("nan", (1, 2), "[guard] update 6: the loss is nan", status=77)
        self.fails("blocked", (1, 2), "cannot go on")

    def test_that_are_none_of_ours(self):
        self.fails("memory", (1, 2), "out of memory")
        self.fails("number", (1, 2), "int: an exception of a type that is not std::exception")
        self.fails("text", (2,), "no such tape")
        self.fails("thread", (1, 2), NO_TAPE)

    def test_outside_of_mpis_life(self):
        self.fails("before", (1, 2), NO_TAPE)
        self.fails("before-one", (2,), "rank 1 on host")
        self.fails("after", (1, 2), NO_TAPE)
        self.fails("caller", (1, 2), NO_TAPE)
        alone = self.run_command(program("system_guarded", "before"))
        self.assertEqual((alone.status, alone.stderr), (1, f"system_guarded: {NO_TAPE}\n"), alone)

    def test_of_a_trainer_that_outlives_mpi(self):
        for size in (1, 2):
            self.succeed(ranks(size, program("system_guarded", "outlives", self.scratch)))
        self.fails("steps-after", (2,), "[trainer] MPI was finalised before this call")

    def test_a_status_of_its_own_stays(self):
        for size in (1, 2):
            self.assertEqual(self.run_command(ranks(size, program("system_guarded", "status", self.scratch))).status, 75)


if __name__ == "__main__":
    support.main()
