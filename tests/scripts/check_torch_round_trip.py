#!/usr/bin/env python3
"""Weights of torchvision's models to Lockstep, five steps there, and back: check_torch_round_trip.py LOCKSTEP [MODEL...].

Status 77 skips: no torch, torchvision, onnx or NumPy. The logits of both libraries are equal before and after the steps, to 1e-5 of the
largest one, for the same weights and images; the steps themselves are held to PyTorch's by tests/parity.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx_runtime
    import torch
    import torchvision
    from safetensors_file import read_safetensors, write_safetensors
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

lockstep = pathlib.Path(sys.argv[1]).resolve()
SIDE, CLASSES = 64, 10
MODELS = {
    "resnet18": lambda: torchvision.models.resnet18(num_classes=CLASSES),
    "resnet50": lambda: torchvision.models.resnet50(num_classes=CLASSES),
    "vit_ti_16": lambda: torchvision.models.VisionTransformer(SIDE, 16, 12, 3, 192, 768, num_classes=CLASSES),
}
RATE = {"vit_ti_16": "--optimizer adamw --lr 0.001"}
TRAINING = "--epochs 0 --max-steps 5 --global-batch 8 --warmup-epochs 0 --no-augment --eval-every 0 --quiet"


def call(folder, *words):
    done = subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")


def settled(model):
    """Norms and a last layer that are not as their initial values are, so that each of their tensors counts."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or name == "heads.head.weight":
                parameter.add_(0.05 * torch.randn_like(parameter))
    model.train()
    with torch.no_grad():
        model(torch.randn(16, 3, SIDE, SIDE))
    return model.eval()


def write_images(folder):
    random = np.random.default_rng(1)
    for part, samples in {"train": 40, "eval": 4}.items():
        np.save(folder / f"{part}_images.npy", random.integers(0, 256, (samples, 3, SIDE, SIDE), np.uint8))
        np.save(folder / f"{part}_labels.npy", np.arange(samples) % CLASSES)


def distance(model, folder):
    """Between torch's and Lockstep's logits of the images in `folder`, as a part of the largest; and the logits."""
    image, logits = (onnx_runtime.load_tensor(folder / name)[1] for name in ("input_0.pb", "output_0.pb"))
    with torch.no_grad():
        own = model(torch.from_numpy(image.copy())).numpy()
    assert own.shape == logits.shape and logits.std() > 1e-3, (own.shape, logits.shape, logits.std())
    return np.abs(own - logits).max() / np.abs(own).max(), logits


def check_model(name, folder):
    torch.manual_seed(1)
    model = settled(MODELS[name]())
    kinds = {torch.float32: "F32", torch.int64: "I64"}
    write_safetensors(folder / "torch.safetensors", {n: (kinds[t.dtype], t.numpy()) for n, t in model.state_dict().items()})
    call(folder, lockstep, "import", "torch.safetensors", "--output", "weights.h5")
    data = f"--dataset npy --data-dir . --model {name} --weights weights.h5 --conv-math exact".split()
    program = lockstep.parent / "train_images"
    call(folder, program, *data, "--batch-size", 4, "--onnx", "before.onnx", "--onnx-example", "before")
    before, logits = distance(model, folder / "before")
    call(folder, program, *data, *TRAINING.split(), *RATE.get(name, "--lr 0.01").split(), "--output", "run")
    call(folder, lockstep, "export", "run", "--output", "after.onnx", "--example", "after", "--batch", 4, "--data-dir", ".")
    call(folder, lockstep, "export", "run", "--output", "trained.safetensors")
    state = {n: torch.from_numpy(a.copy()) for n, a in read_safetensors(folder / "trained.safetensors").items()}
    model.load_state_dict(state, strict=True)
    after, trained = distance(model, folder / "after")
    moved = np.abs(trained - logits).max() / np.abs(logits).max()
    assert moved > 1e-2, f"{name}: five steps change the logits by {moved:.1e} of the largest one, expected more"
    print(f"{name}: logits within {before:.1e}, after five steps, which change them by {moved:.1e}, within {after:.1e}", flush=True)
    assert before < 1e-5 and after < 1e-5, f"{name}: expected 1e-5"


torch.set_num_threads(1)
for model_name in sys.argv[2:] or MODELS:
    with tempfile.TemporaryDirectory() as temporary:
        write_images(pathlib.Path(temporary))
        check_model(model_name, pathlib.Path(temporary))
