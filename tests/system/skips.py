"""unittest.main() for ctest, which shows a script that ends with 77 as skipped."""

import sys
import unittest


def main():
    """Runs the classes that the command line names. Ends with 77 and the reasons if a test was skipped and none failed: of a class with tests
    that not every machine can run ctest must not say that all of it passed, so such tests have a class of their own."""
    result = unittest.main(module="__main__", exit=False).result
    for test, reason in result.skipped:
        print(f"SKIP: {test.id()}: {reason}", flush=True)
    if result.testsRun == 0 and not result.skipped:
        print(f"no test ran, expected some: {' '.join(sys.argv)}", flush=True)
        sys.exit(1)
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
