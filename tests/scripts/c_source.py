"""A model of ONNX as C source: `lockstep export NAME.onnx --output NAME.c`, compiled as C99 without a warning, and called from here."""
import ctypes
import pathlib
import subprocess

import numpy as np

COMPILE = "cc -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror -O2 -shared -fPIC".split()


def build(lockstep, onnx_file, folder, name="model"):
    """The compiled library, and the path of the weights."""
    folder = pathlib.Path(folder)
    done = subprocess.run([str(lockstep), "export", str(onnx_file), "--output", str(folder / f"{name}.c")], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"lockstep export to C: status {done.returncode}: {done.stderr}")
    library = folder / f"{name}.so"
    library.unlink(missing_ok=True)  # a library that is loaded must not be written over
    done = subprocess.run([*COMPILE, str(folder / f"{name}.c"), "-o", str(library), "-lm"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"cc: status {done.returncode}: {done.stderr[:2000]}")
    return ctypes.CDLL(str(library)), folder / f"{name}.weights"


def run(library, weights, inputs, output_shape, name="model"):
    pointer = ctypes.c_void_p()
    load, compute = getattr(library, f"{name}_load"), getattr(library, f"{name}_run")
    status = load(str(weights).encode(), ctypes.byref(pointer))
    assert status == 0, f"load: status {status}"
    kinds = {np.dtype(np.int64): np.int32}
    arrays = [np.ascontiguousarray(x, kinds.get(x.dtype, x.dtype)) for x in inputs]
    output = np.full(output_shape, np.nan, next((a.dtype for a in arrays if a.dtype.kind == "f"), np.float32))
    address = lambda array: array.ctypes.data_as(ctypes.c_void_p)
    status = compute(pointer, ctypes.c_long(output_shape[0]), *map(address, arrays), address(output))
    getattr(library, f"{name}_free")(pointer)
    assert status == 0, f"run: status {status}"
    return output


def distance(lockstep, onnx_file, inputs, expected, folder, name):
    """The largest difference to the expected output, in parts of the largest number."""
    library, weights = build(lockstep, onnx_file, folder, name)
    output = run(library, weights, inputs, expected.shape, name)
    return float(np.abs(output - expected).max() / np.abs(expected).max())
