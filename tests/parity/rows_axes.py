"""Reductions over axes, products of stacks of matrices, and norms of rows: output and the gradient of every operand."""
import copy
import functools

import torch
from torch import nn
from torch.nn import functional as F

import session
from rows_operators import OperatorRow, to


class Reductions(OperatorRow):
    # The first axis stays: it is the batch of the runner.
    CASES = {"last": ((5, 7), [1]), "middle": ((3, 8, 5), [1]), "from the end": ((3, 4, 5, 2), [-1, 1]),
             "several": ((4, 3, 5, 6), [1, 3]), "long rows": ((3, 5000), [1])}

    def test_over_axes(self):
        functions = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin,
                     "logsumexp": torch.logsumexp}
        for name, function in functions.items():
            for title, (shape, axes) in self.CASES.items():
                for keep in (False, True):
                    self.add(f"{name} {title}", {"x": self.random(*shape)},
                             lambda o, f=function, a=axes, k=keep: f(o["x"], dim=a, keepdim=k), op=name, axes=axes,
                             keep=keep)
        self.compare_all("reductions")

    def test_equal_extremes_share_the_gradient(self):
        x = torch.tensor([[1.0, 3, 3, 2], [0, 0, 0, 0], [-1, -2, -2, -2]])
        for name, function in {"amax": torch.amax, "amin": torch.amin}.items():
            self.add(name, {"x": x}, lambda o, f=function: f(o["x"], dim=1), op=name, axes=[1])
        self.compare_all("equal extremes")

    def test_variance(self):
        for title, (shape, axes) in self.CASES.items():
            for correction in (0, 1):
                self.add(f"variance {title}", {"x": self.random(*shape) + 10},
                         lambda o, a=axes, c=correction: torch.var(o["x"], dim=a, unbiased=c == 1), op="variance",
                         axes=axes, correction=correction)
        self.compare_all("variance")

    def test_softmax(self):
        for shape, axis in (((4, 9), 1), ((3, 5, 4), -1), ((3, 5, 4), 1), ((3, 10, 6, 5), -3)):
            for name, function in {"softmax": F.softmax, "log_softmax": F.log_softmax}.items():
                self.add(f"{name} of {shape} along {axis}", {"x": 5 * self.random(*shape)},
                         lambda o, f=function, a=axis: f(o["x"], dim=a), op=name, axis=axis)
        self.compare_all("softmax")


class Stacks(OperatorRow):
    CASES = {"stack": ((3, 4, 5), (3, 5, 6)), "broadcast": ((3, 1, 4, 5), (2, 5, 6)),
             "one matrix on the right": ((3, 2, 4, 5), (5, 7)), "one matrix on the left": ((4, 5), (3, 5, 6)),
             "large": ((2, 70, 90), (2, 90, 80))}

    def test_matmul(self):
        for title, (a, b) in self.CASES.items():
            for ta in (False, True):
                for tb in (False, True):
                    x, other = self.random(*a), self.random(*b)
                    operands = {"x": x.mT.contiguous() if ta else x, "other": other.mT.contiguous() if tb else other}
                    self.add(f"{title}, transposed {ta}, {tb}", operands,
                             lambda o, ta=ta, tb=tb: (o["x"].mT if ta else o["x"]) @ (o["other"].mT if tb else o["other"]),
                             op="matmul", transpose_a=ta, transpose_b=tb)
        self.compare_all("matmul")

    def test_linear_over_leading_dimensions(self):
        for shape in ((3, 4, 33), (2, 3, 2, 33)):
            operands = {"x": self.random(*shape), "weight": self.random(11, 33), "bias": self.random(11)}
            self.add(f"linear of {shape}", operands, lambda o: F.linear(o["x"], o["weight"], o["bias"]), op="linear")
        self.compare_all("linear")


class RMSNorm(nn.Module):
    """torch.nn.RMSNorm, which PyTorch has since 2.4; eps is that of the type of x."""

    def __init__(self, shape, affine):
        super().__init__()
        self.axes = tuple(range(-len(shape), 0))
        if affine:
            self.weight = nn.Parameter(torch.ones(shape))

    def forward(self, x):
        y = x * torch.rsqrt(x.square().mean(self.axes, keepdim=True) + torch.finfo(x.dtype).eps)
        return y * self.weight if hasattr(self, "weight") else y


class Norms(OperatorRow):
    CASES = {
        "layer norm": ((4, 3, 37), lambda: nn.LayerNorm(37), {"op": "layer_norm", "shape": [37]}),
        "layer norm of images": ((3, 2, 5, 4), lambda: nn.LayerNorm([2, 5, 4], eps=1e-3),
                                 {"op": "layer_norm", "shape": [2, 5, 4], "epsilon": 1e-3}),
        "layer norm without parameters": ((70, 48), lambda: nn.LayerNorm(48, elementwise_affine=False),
                                          {"op": "layer_norm", "shape": [48], "affine": False}),
        "layer norm of many rows": ((300, 64), lambda: nn.LayerNorm(64), {"op": "layer_norm", "shape": [64]}),
        "rms norm": ((4, 3, 37), lambda: RMSNorm([37], True), {"op": "rms_norm", "shape": [37]}),
        "rms norm without weight": ((4, 6, 5), lambda: RMSNorm([6, 5], False),
                                    {"op": "rms_norm", "shape": [6, 5], "affine": False}),
        "group norm": ((3, 6, 5, 4), lambda: nn.GroupNorm(3, 6), {"op": "group_norm", "groups": 3}),
        "group norm of volumes": ((2, 4, 3, 2, 5), lambda: nn.GroupNorm(2, 4, eps=1e-3),
                                  {"op": "group_norm", "groups": 2, "epsilon": 1e-3}),
        "group norm without parameters": ((3, 8, 7), lambda: nn.GroupNorm(1, 8, affine=False),
                                          {"op": "group_norm", "groups": 1, "affine": False}),
        "instance norm": ((3, 4, 5, 6), lambda: nn.InstanceNorm2d(4), {"op": "instance_norm"}),
        "instance norm of sequences": ((3, 4, 9), lambda: nn.InstanceNorm1d(4, affine=True),
                                       {"op": "instance_norm", "affine": True}),
        "instance norm of volumes": ((2, 3, 4, 3, 5), lambda: nn.InstanceNorm3d(3, affine=True),
                                     {"op": "instance_norm", "affine": True}),
    }

    def test_output_and_gradients(self):
        for title, (shape, make, request) in self.CASES.items():
            norm = make()
            state = {name: self.random(*tensor.shape) for name, tensor in norm.state_dict().items()}
            norm.load_state_dict(state)
            weights = {"x": 2 * self.random(*shape) + 1} | {f"bn.{n}": t for n, t in state.items()}
            batch = {"cotangent": self.random(*shape)}
            self.cases.append(session.Case(title, functools.partial(
                self.run_torch, norm, weights["x"], batch["cotangent"]), weights, batch, request))
        self.compare_all("norms")

    @staticmethod
    def run_torch(norm, x, cotangent, dtype, memory_format):
        fresh = copy.deepcopy(norm).to(dtype)
        x, cotangent = to(x, dtype, memory_format).requires_grad_(), to(cotangent, dtype, memory_format)
        y = fresh(x)
        ((y * cotangent).sum() / len(y)).backward()
        output = y.detach().numpy()
        result = {"output": output, "before": output, "after_training": output}
        result |= session.as_arrays("gradient/bn.", ((n, p.grad) for n, p in fresh.named_parameters()))
        result |= session.as_arrays("after/bn.", fresh.state_dict().items())
        return result | session.as_arrays("after/", [("x", x)]) | session.as_arrays("gradient/", [("x", x.grad)])
