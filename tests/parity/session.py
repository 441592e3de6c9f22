"""Runs one piece of training in PyTorch and in Lockstep, from the same weights on the same samples."""
import copy
import dataclasses
import functools
import json
import subprocess
import tempfile
from unittest import mock

import h5py
import numpy as np
import torch
from torch.nn import functional as F

import judge

RUNNER = None  # the path of parity_runner, set by the program


@functools.cache
def runner():
    """One process for all requests: each start of MPI would take longer than most requests. It ends with this program."""
    return subprocess.Popen([RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(*requests):
    """The runner's answers; its own message becomes the test's on failure."""
    process = runner()
    try:
        print(json.dumps(requests), file=process.stdin, flush=True)
        line = process.stdout.readline()
    except BrokenPipeError:
        line = ""
    if not line:
        raise AssertionError(f"parity_runner ended with {process.wait()}, expected an answer to {requests}")
    answers = json.loads(line)
    if isinstance(answers, dict):
        raise AssertionError(f"parity_runner: {answers['error']}")
    return answers


def write(path, parts):
    """An HDF5 file as docs/pytorch.md describes it, with a group for each part: a dataset per name."""
    with h5py.File(path, "w") as file:
        for part, tensors in enumerate(parts):
            for name, tensor in tensors.items():
                file[f"{part}/{name}"] = tensor.detach().cpu().numpy()


def read(path):
    """All datasets by their full names."""
    tensors = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: tensors.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return tensors


def lockstep(*runs):
    """The runner's tensors by name, with "losses", for each (weights, batch, request). Weights None: the model's own
    initial ones."""
    with tempfile.TemporaryDirectory() as folder:
        files, requests = {"batch": {}, "weights": {}}, []  # parts by the identity of their tensors, which several runs may share
        for i, (weights, batch, request) in enumerate(runs):
            requests.append({"task": "train", "output": f"{folder}/{i}.h5", **request})
            for kind, tensors in (("batch", batch), ("weights", weights)):
                if tensors is not None:
                    number, _ = files[kind].setdefault(id(tensors), (len(files[kind]), tensors))
                    requests[-1] |= {kind: f"{folder}/{kind}.h5", f"{kind}_part": f"{number}/"}
        for kind, parts in files.items():
            write(f"{folder}/{kind}.h5", [tensors for _, tensors in parts.values()])
        answers = ask(*requests)
        return [{**read(request["output"]), "losses": np.array(answer["losses"])}
                for request, answer in zip(requests, answers)]


def moments(state, parameter):
    """An optimizer's state of a parameter, with its first and second moment."""
    for name in "m", "v":
        state.setdefault(name, torch.zeros_like(parameter))
    return state


class NAdam(torch.optim.Optimizer):
    """torch.optim.NAdam as in PyTorch 2. That of PyTorch 1.13 has the step's momentum twice in the product of the next one."""

    def __init__(self, parameters, **options):
        super().__init__(parameters, options)
        self.steps, self.product = 0, 1.0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        momentum, following = (0.9 * (1 - 0.5 * 0.96**(t * 0.004)) for t in (self.steps, self.steps + 1))
        self.product *= momentum
        for group in self.param_groups:
            for p in group["params"]:
                state = moments(self.state[p], p)
                gradient = p.grad.add(p, alpha=group["weight_decay"])
                state["m"].lerp_(gradient, 1 - 0.9)
                state["v"].mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
                root = (state["v"] / (1 - 0.999**self.steps)).sqrt() + 1e-8
                p.addcdiv_(gradient, root, value=-group["lr"] * (1 - momentum) / (1 - self.product))
                p.addcdiv_(state["m"], root, value=-group["lr"] * following / (1 - self.product * following))


class Layerwise(torch.optim.Optimizer):
    """LARS and LAMB, which PyTorch lacks, from their papers; one-dimensional parameters (biases, norms) have no trust ratio."""

    def __init__(self, parameters, name, **options):
        super().__init__(parameters, options)
        self.name, self.steps = name, 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = moments(self.state[p], p)
                (self.lars if self.name == "lars" else self.lamb)(p, state, group["lr"], group["weight_decay"])

    @staticmethod
    def lars(p, state, rate, decay):
        trust = 0.001 * p.norm() / (p.grad.norm() + decay * p.norm() + 1e-8) if p.dim() > 1 else 1
        state["m"].mul_(0.9).add_(rate * trust * (p.grad + decay * p))
        p.sub_(state["m"])

    def lamb(self, p, state, rate, decay):
        state["m"].mul_(0.9).add_(p.grad, alpha=1 - 0.9)
        state["v"].mul_(0.999).addcmul_(p.grad, p.grad, value=1 - 0.999)
        step = state["m"] / (1 - 0.9**self.steps) / ((state["v"] / (1 - 0.999**self.steps)).sqrt() + 1e-6) + decay * p
        p.sub_(rate * (p.norm() / step.norm() if p.dim() > 1 else 1) * step)


def optimizer_of(parameters, request):
    """The counterpart of a request's optimizer, torch.optim's if there is one."""
    common = {"lr": request.get("lr", 0.0), "weight_decay": request.get("weight_decay", 0.0)}
    name = request.get("optimizer", "sgd")
    if name == "sgd":
        return torch.optim.SGD(parameters, momentum=request.get("momentum", 0.0),
                               nesterov=request.get("nesterov", False), **common)
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, alpha=request.get("alpha", 0.99), momentum=request.get("momentum", 0.0),
                                   centered=request.get("centered", False), **common)
    if name in ("lars", "lamb"):
        return Layerwise(parameters, name, **common)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad, "adamax": torch.optim.Adamax,
            "nadam": NAdam, "radam": torch.optim.RAdam}[name](parameters, **common)


def loss_of(request, dtype):
    weights = request.get("class_weights")
    return lambda logits, label: F.cross_entropy(
        logits.flatten(0, -2), label.flatten().long(), weight=None if weights is None else torch.tensor(weights, dtype=dtype),
        label_smoothing=request.get("label_smoothing", 0.0))


def as_arrays(prefix, tensors):
    return {prefix + name: t.detach().numpy().copy() for name, t in tensors if t is not None}


class ShiftedRelu(torch.autograd.Function):
    """ReLU, but which inputs pass a gradient is decided at `shift` times their root mean square instead of zero."""

    @staticmethod
    def forward(context, x, shift):
        context.save_for_backward(x > shift * x.square().mean().sqrt())
        return x.clamp(min=0)

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0], None


def borderline_runs(run_torch, width):
    """Results in f32 where every ReLU whose input is within `width` of zero is decided the one way, and the other, at both
    ends of a ReLU6; the images are moved a little too, for maxima that nearly tie."""
    results = []
    for shift in (width, -width):
        def relu(x, inplace=False, shift=shift):
            return ShiftedRelu.apply(x, shift)

        def hardtanh(x, low, high, inplace=False, shift=shift):
            return low + ShiftedRelu.apply(x - low, shift) - ShiftedRelu.apply(x - high, shift)
        with mock.patch.object(F, "relu", relu), mock.patch.object(torch, "relu", relu), mock.patch.object(F, "hardtanh", hardtanh):
            results.append(run_torch(torch.float32, torch.contiguous_format, torch.Generator().manual_seed(7)))
    return results


def torch_model(model, batch, request, dtype, memory_format, noise=None):
    """What the runner does for a model of the zoo, in PyTorch and of that precision; `noise` moves the images."""
    source, label = (batch[name] for name in (("tokens", "targets") if "gpt" in request else
                                              ("input", "target") if "field_model" in request else ("image", "label")))
    if "field_model" in request or source.dim() != 4:  # not all tensors have four dimensions
        memory_format = torch.contiguous_format
    model = copy.deepcopy(model).to(dtype)
    if memory_format is not torch.contiguous_format:
        model = model.to(memory_format=memory_format)
    image = source.to(dtype, memory_format=memory_format) if source.is_floating_point() else source
    label = label.to(dtype) if label.is_floating_point() else label
    if noise is not None:
        image = image * (1 + (2 * torch.rand(image.shape, generator=noise, dtype=dtype) - 1) * judge.MOVED)
    steps = request.get("steps", 1)
    rows, loss_function = len(image) // steps, F.mse_loss if "field_model" in request else loss_of(request, dtype)
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
            result |= as_arrays("gradient/", ((n, p.grad) for n, p in model.state_dict(keep_vars=True).items() if isinstance(p, torch.nn.Parameter)))
            result |= as_arrays("buffer/", model.named_buffers())
        optimizer.step()
    result |= as_arrays("after/", model.state_dict().items())
    predict("after_training")
    return result | {"losses": np.array(losses)}


@dataclasses.dataclass
class Case:
    """Something to compare: `run_torch(dtype, memory_format)` does in PyTorch what the request asks of the runner. A
    deep one takes `noise` too."""
    title: str
    run_torch: callable
    weights: dict
    batch: dict
    request: dict
    is_deep: bool = False


def has_images(case):
    """Whether a tensor has elements whose order can be chosen; of fields run_torch() leaves it as it is."""
    tensors = (*case.weights.values(), *case.batch.values())
    return "field_model" not in case.request and any(tensor.ndim == 4 for tensor in tensors)


def f32_runs(case):
    """Results of the ways in which this PyTorch computes in f32: with oneDNN and with its own loops over OpenBLAS, each
    with images, if there are some, in either order of their elements. The error of any of them is one that people live with."""
    results = []
    for onednn in (True, False):
        for memory_format in (torch.contiguous_format, *([torch.channels_last] if has_images(case) else [])):
            with torch.backends.mkldnn.flags(enabled=onednn):
                results.append(case.run_torch(torch.float32, memory_format))
    return results


def compare(test, title, cases):
    """Judges cases together, as one line of output; the runner does them all in one call."""
    ways = ({"precision": "f32", "conv_math": "exact"}, {"precision": "f64"}, {"precision": "f32", "conv_math": "fast"})
    runs = [(c.weights, c.batch, c.request | way) for c in cases for way in ways]
    results = lockstep(*runs)
    judged = judge.Judge(test, title)
    for case, f32, f64, fast in zip(cases, results[0::3], results[1::3], results[2::3]):
        truth, single = case.run_torch(torch.float64, torch.contiguous_format), f32_runs(case)
        borderline = {kind: borderline_runs(case.run_torch, width) if case.is_deep else []
                      for kind, width in (("exact", judge.BORDERLINE), ("fast", judge.FAST * judge.BORDERLINE))}
        for result in (*single, *borderline["exact"], *borderline["fast"], f32, f64, fast):
            if "cotangent" in case.batch:  # a sum that nearly cancels, only there for its gradient
                result.pop("losses", None)
            test.assertEqual(result.keys(), truth.keys(), case.title)
        for name, want in truth.items():
            scale = None
            if name.startswith("after/") and case.request.get("lr") and np.issubdtype(want.dtype, np.floating):
                # What training changed, not the weight that was there before.
                scale = want - case.weights[name.removeprefix("after/")].numpy()
            decided = {kind: [b[name] for b in results] for kind, results in borderline.items()}
            judged.check(f"{case.title}, {name}", want, [s[name] for s in single], decided,
                         {"exact": f32[name], "fast": fast[name]}, f64[name], scale)
    judged.report()
