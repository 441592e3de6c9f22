#!/usr/bin/env python3
"""`lockstep export RUN`, read by another runtime: check_export_runs.py LOCKSTEP [CASE...]. Status 77 skips: no onnx, torch or NumPy.

Models of fields, of series, of text and of clicks are trained for two steps and exported by the programs that train them; the example's
output, which Lockstep computed, comes out of the ONNX file in another runtime, and out of C source, to 1e-5 of its largest number, and is what `lockstep
predict` writes, but for the units of files that are normalised.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import c_source
    import numpy as np
    import onnx_runtime
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

lockstep = pathlib.Path(sys.argv[1]).resolve()
TRAINING = "--max-steps 2 --epochs 1 --global-batch 8 --threads 1 --loaders 1 --eval-every 0 --lr 0.01 --warmup-epochs 0 --quiet".split()
FIELDS = "--dataset arrays --inputs x.npy --targets y.npy --eval-fraction 0.25 --normalise none"
SERIES = "--dataset arrays --inputs s.npy --targets t.npy --eval-fraction 0.25 --normalise none --series"
CLICKS = "--dataset clicks --click-samples 64 --click-eval-samples 16 --click-fields 3 --click-ids 20 --click-dense 2 --dim 4"
GPT = "--dataset corpus --corpus-samples 16 --context 16 --layers 2 --heads 4 --width 16"
CASES = {
    **{model: ("train_fields", f"{FIELDS} --model {model} --width 8")
       for model in ("mlp", "cnn", "autoencoder", "resnet", "unet", "vae")},
    "cosmoflow": ("train_fields", FIELDS.replace("y.npy", "n.npy") + " --model cosmoflow --width 4"),
    "fno": ("train_fields", f"{FIELDS} --model fno --width 6 --depth 2 --modes 3"),
    "unet_3d": ("train_fields", FIELDS.replace("x.npy", "x8.npy").replace("y.npy", "out=x8.npy") + " --model unet --width 4 --depth 1"),
    "fno_3d": ("train_fields", FIELDS.replace("x.npy", "x3.npy").replace("y.npy", "out=x3.npy") + " --model fno --width 4 --depth 1 --modes 2"),
    **{model: ("train_fields", f"{SERIES} --model {model} --width 8 --depth 2") for model in ("lstm", "gru", "tcn", "encoder")},
    "gpt": ("train_gpt", GPT),
    "gpt_rotary": ("train_gpt", f"{GPT} --positions rotary --norm rms --mlp swiglu --key-heads 2 --no-bias --untied"),
    "gpt_alibi": ("train_gpt", f"{GPT} --positions alibi"),
    **{model: ("train_recsys", f"{CLICKS} --model {model}") for model in ("dlrm", "deepfm", "wide-deep", "towers")},
}


def call(folder, *words):
    done = subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")


def write_arrays(folder):
    random = np.random.default_rng(1)
    for name, shape in {"x": (32, 2, 8, 8), "y": (32, 8, 8), "n": (32, 3), "x3": (32, 6, 5, 4), "x8": (32, 1, 8, 8, 8), "s": (32, 12, 3), "t": (32, 4)}.items():
        np.save(folder / f"{name}.npy", random.standard_normal(shape).astype(np.float32))


def compare_with_predict(folder, case):
    """The example's output and the file of predictions: of the same first samples."""
    call(folder, lockstep, "predict", case, "--output", f"{case}.predicted.npy")
    expected = np.load(folder / f"{case}.predicted.npy")
    output = onnx_runtime.load_tensor(folder / f"{case}.data" / "output_0.pb")[1]
    distance = np.abs(output.reshape(3, -1) - expected[:3].reshape(3, -1)).max() / np.abs(expected).max()
    assert distance < 1e-5, f"lockstep predict's numbers differ by {distance:.2g} of the largest one"


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    write_arrays(folder)
    failed = []
    for case in sys.argv[2:] or CASES:
        program, options = CASES[case]
        call(folder, lockstep.parent / program, *options.split(), *TRAINING, "--output", case)
        try:
            call(folder, lockstep, "export", case, "--output", f"{case}.onnx", "--example", f"{case}.data", "--batch", 3)
            nodes, distance = onnx_runtime.compare(folder / f"{case}.onnx", folder / f"{case}.data")
            data = folder / f"{case}.data"
            inputs = [onnx_runtime.load_tensor(path)[1] for path in sorted(data.glob("input_*.pb"))]
            in_c = c_source.distance(lockstep, folder / f"{case}.onnx", inputs, onnx_runtime.load_tensor(data / "output_0.pb")[1], folder, "run_" + case.replace("-", "_"))
            assert in_c < 1e-5, f"the output of the C source differs by {in_c:.2g} of the largest number"
            if program == "train_fields":
                compare_with_predict(folder, case)
            print(f"{case}: {nodes} nodes, output within {distance:.1e}, of C source {in_c:.1e}", flush=True)
        except (SystemExit, AssertionError, KeyError, RuntimeError, TypeError) as error:
            failed.append(case)
            print(f"{case}: {error!r}", flush=True)
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)
