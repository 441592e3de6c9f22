"""Runs one piece of training in PyTorch and in Lockstep, from the same weights on the same samples."""
import contextlib
import copy
import json
import pathlib
import subprocess
import tempfile

import h5py
import numpy as np
import torch
from torch.nn import functional as F

RUNNER = None  # the path of parity_runner, set by the program


def ask(request):
    """The runner's answer; its own message becomes the test's on failure."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "request.json"
        path.write_text(json.dumps(request))
        done = subprocess.run([RUNNER, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"parity_runner exited with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def write(path, tensors):
    """An HDF5 file as docs/pytorch.md describes it: a dataset per name."""
    with h5py.File(path, "w") as file:
        for name, tensor in tensors.items():
            file[name] = tensor.detach().cpu().numpy()


def read(path):
    """All datasets by their full names."""
    tensors = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: tensors.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return tensors


def lockstep(weights, batch, request):
    """The runner's tensors by name, with "losses". `weights` None: its own initial ones."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        request = {"task": "train", "batch": str(folder / "batch.h5"), "output": str(folder / "output.h5"), **request}
        if weights is not None:
            write(folder / "weights.h5", weights)
            request["weights"] = str(folder / "weights.h5")
        write(folder / "batch.h5", batch)
        answer = ask(request)
        return {**read(folder / "output.h5"), "losses": np.array(answer["losses"])}


def optimizer_of(parameters, request):
    """torch.optim's counterpart of a request's optimizer."""
    common = {"lr": request.get("lr", 0.0), "weight_decay": request.get("weight_decay", 0.0)}
    name = request.get("optimizer", "sgd")
    if name == "sgd":
        return torch.optim.SGD(parameters, momentum=request.get("momentum", 0.0),
                               nesterov=request.get("nesterov", False), **common)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](parameters, **common)


def loss_of(request, dtype):
    weights = request.get("class_weights")
    return lambda logits, label: F.cross_entropy(
        logits, label.long(), weight=None if weights is None else torch.tensor(weights, dtype=dtype),
        label_smoothing=request.get("label_smoothing", 0.0))


def as_arrays(prefix, tensors):
    return {prefix + name: t.detach().numpy().copy() for name, t in tensors if t is not None}


def torch_model(model, batch, request, dtype):
    """What the runner does for a model of the zoo, in PyTorch and of that precision."""
    model = copy.deepcopy(model).to(dtype)
    image, label = batch["image"].to(dtype), batch["label"]
    steps = request.get("steps", 1)
    rows, loss_function = len(image) // steps, loss_of(request, dtype)
    optimizer = optimizer_of(model.parameters(), request)
    result, losses = {}, []

    def predict(name):
        model.eval()
        with torch.no_grad():
            result[name] = model(image[:rows]).numpy()
        model.train()

    predict("before")
    for step in range(steps):
        part = slice(step * rows, (step + 1) * rows)
        logits = model(image[part])
        loss = loss_function(logits, label[part])
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            result["output"] = logits.detach().numpy().copy()
            result |= as_arrays("gradient/", ((n, p.grad) for n, p in model.named_parameters()))
            result |= as_arrays("buffer/", model.named_buffers())
        optimizer.step()
    result |= as_arrays("after/", model.state_dict().items())
    predict("after_training")
    return result | {"losses": np.array(losses)}


def f32_paths():
    """The ways in which this PyTorch computes a convolution in f32: oneDNN, and its own loops over OpenBLAS. The error
    of either is one that people live with."""
    return [contextlib.nullcontext(), torch.backends.mkldnn.flags(enabled=False)]


def all_runs(run_torch, weights, batch, request):
    """(truth, [PyTorch in f32, ...], Lockstep in f32, in f64), each a dict of arrays with the same names."""
    single = []
    for path in f32_paths():
        with path:
            single.append(run_torch(torch.float32))
    truth = run_torch(torch.float64)
    f32, f64 = (lockstep(weights, batch, {**request, "precision": p}) for p in ("f32", "f64"))
    for result in (*single, f32, f64):
        if result.keys() != truth.keys():
            raise AssertionError(f"other tensors than PyTorch's: {sorted(result.keys() ^ truth.keys())}")
    return truth, single, f32, f64
