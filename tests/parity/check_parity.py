#!/usr/bin/env python3
"""Compares Lockstep with PyTorch: check_parity.py RUNNER [ROW[.TEST] ...], all rows without a name.

A row is a unittest class of rows_*.py. Exit status 77 says that PyTorch, torchvision or h5py is missing.
"""
import importlib.util
import sys
import unittest

SKIPPED = 77


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    missing = [name for name in ("torch", "torchvision", "h5py", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} has no {', '.join(missing)}; Debian's packages are python3-torchvision and "
              "python3-h5py")
        return SKIPPED
    # Only now: what they import may be missing.
    import torch

    import rows_attention
    import rows_axes
    import rows_data
    import rows_exchange
    import rows_fields
    import rows_gpt
    import rows_losses
    import rows_models
    import rows_operators
    import rows_recommenders
    import rows_shapes
    import rows_spatial
    import rows_sequences
    import rows_tables
    import session

    session.RUNNER = sys.argv[1]
    torch.set_num_threads(1)
    modules = (rows_attention, rows_axes, rows_data, rows_exchange, rows_fields, rows_gpt, rows_losses, rows_models, rows_operators,
               rows_recommenders, rows_sequences, rows_shapes, rows_spatial, rows_tables)
    rows = {name: value for module in modules for name, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == module.__name__}
    suite = unittest.TestSuite()
    for wanted in sys.argv[2:] or rows:
        row, _, test = wanted.partition(".")
        if row not in rows:
            sys.exit(f"check_parity.py: no row '{row}', there are: {', '.join(rows)}")
        suite.addTest(rows[row](test) if test else unittest.defaultTestLoader.loadTestsFromTestCase(rows[row]))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.testsRun == 0:
        sys.exit("check_parity.py: no test was run")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
