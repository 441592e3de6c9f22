"""bench/kernel_table.py: the table of known times, the same from the file that it keeps."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "kernel_table.py"
TYPES = {"conv2d": "f32(8, 16, 4, 4) f32(32, 16, 3, 3) -> f32(8, 32, 4, 4)",
         "conv2d_backward_data": "f32(8, 32, 4, 4) f32(32, 16, 3, 3) -> f32(8, 16, 4, 4)",
         "conv2d_backward_weights": "f32(8, 16, 4, 4) f32(8, 32, 4, 4) -> f32(32, 16, 3, 3)"}


def lines(times, chosen="native:avx2:winograd4", threads=1):
    """Of one run: a dictionary of times for each direction, by implementation."""
    made = [{"model": "net", "batch": 8, "op": op, "attributes": "stride 1x1 padding 1x1", "types": TYPES[op], "implementation": name,
             "chosen": name == chosen, "median_us": time, "cpu": "a processor", "threads": threads}
            for op, kernels in zip(TYPES, times) for name, time in kernels.items()]
    return "\n".join(map(json.dumps, made + [{"dispatch_ns_per_node": 1.0, "cpu": "a processor", "threads": threads}])) + "\n"


class KernelTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def table(self, *arguments, status=0):
        done = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.splitlines()[2:] if status == 0 else done.stderr

    def run_file(self, name, *times, **options):
        (self.folder / name).write_text(lines(times, **options))
        return name

    def test_ratios_are_of_the_sums_of_a_run_and_a_kept_file_gives_the_same(self):
        # The best of oneDNN's kernels counts, whatever its name begins with; a generic kernel does not.
        first = self.run_file("a", {"native:avx2:winograd4": 1, "native:avx2:direct": 8, "jit:avx2": 4, "brgconv:avx2": 2, "generic": 1},
                              {"native:avx2:winograd4": 1, "jit:avx2": 3}, {"native:avx2:winograd4": 2, "jit:avx2": 3})
        second = self.run_file("b", {"native:avx2:winograd4": 1, "jit:avx2": 4}, {"native:avx2:winograd4": 1, "jit:avx2": 3},
                               {"native:avx2:winograd4": 2, "jit:avx2": 5})
        want = ["| net, 16 -> 32, 4 x 4, batch 8 | 2.50 (2.00 to 3.00) | 2.50 (2.00 to 3.00) | 3.00 | 3.00 | 2.00 |"]
        self.assertEqual(self.table(first, second, "--keep", "kept"), want)
        self.assertEqual(self.table("kept"), want)

    def test_a_build_without_onednn_has_no_ratio(self):
        self.assertEqual(self.table(self.run_file("a", *[{"native:avx2:winograd4": 1}] * 3), "--keep", "kept"),
                         ["| net, 16 -> 32, 4 x 4, batch 8 | - | - | - | - | - |"])

    def test_runs_on_other_threads_are_not_mixed(self):
        times = [{"native:avx2:winograd4": 1, "jit:avx2": 2}] * 3
        files = self.run_file("a", *times), self.run_file("b", *times, threads=2)
        self.assertIn("the files are of 2 machines, expected one", self.table(*files, status=1))
        for file in files:
            self.table(file, "--keep", "kept")
        self.assertEqual(len(self.table("kept", "--threads", 2)), 1)


if __name__ == "__main__":
    unittest.main()
