"""Single operators, where it is easy to mean something else than PyTorch: output and the gradient of every operand."""
import copy
import functools
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import session


class OperatorRow(unittest.TestCase):
    """What rows of operators share: random operands and a random cotangent; add() collects, compare_all() compares."""

    def setUp(self):
        self.generator = torch.Generator().manual_seed(3)
        self.cases = []

    def random(self, *shape):
        return torch.randn(shape, generator=self.generator)

    def add(self, title, operands, function, batch=None, **request):
        """`function` maps the operands to the output, or to the loss if there is a `batch` for one."""
        is_loss = batch is not None
        if not is_loss:
            batch = {"cotangent": self.random(*function(operands).shape)}

        def run_torch(dtype, memory_format):
            leaves = {n: to(t, dtype, memory_format).requires_grad_() for n, t in operands.items()}
            y = function(leaves)
            loss = y if is_loss else (y * batch["cotangent"].to(dtype)).sum() / len(y)
            loss.backward()
            result = session.as_arrays("gradient/", ((n, t.grad) for n, t in leaves.items()))
            result |= session.as_arrays("after/", leaves.items())
            if is_loss:
                return result | {"losses": loss.detach().numpy().reshape(1)}
            output = y.detach().numpy()
            return result | {"output": output, "before": output, "after_training": output}

        self.cases.append(session.Case(title, run_torch, operands, batch, request))

    def compare_all(self, title):
        session.compare(self, title, self.cases)


def to(tensor, dtype, memory_format):
    """A copy; only images have an order of elements to choose."""
    return tensor.to(dtype, memory_format=memory_format if tensor.ndim == 4 else torch.preserve_format, copy=True)


def pair(options, name, default):
    return options.get(name + "_h", default), options.get(name + "_w", default)


class Convolution(OperatorRow):
    CASES = {
        "plain": ((5, 16, 9, 7), (24, 16, 3, 3), {"padding_h": 1, "padding_w": 1}),
        "strides and paddings of their own": ((4, 16, 13, 11), (16, 16, 3, 5), {
            "stride_h": 2, "stride_w": 3, "padding_h": 1, "padding_w": 2}),
        "dilated": ((3, 8, 14, 15), (16, 8, 3, 3), {"dilation_h": 2, "dilation_w": 3, "padding_h": 2, "padding_w": 3}),
        "dilated with stride": ((3, 8, 14, 15), (16, 8, 3, 2), {"dilation_h": 2, "dilation_w": 1, "stride_h": 2}),
        "grouped": ((3, 12, 8, 8), (8, 3, 3, 3), {"groups": 4, "padding_h": 1, "padding_w": 1}),
        "depthwise": ((3, 16, 8, 9), (16, 1, 3, 3), {"groups": 16, "padding_h": 1, "padding_w": 1, "stride_w": 2}),
        "depthwise, two filters each": ((2, 5, 7, 7), (10, 1, 3, 3), {"groups": 5}),
        "grouped, dilated, strided": ((2, 6, 15, 13), (9, 2, 3, 3), {
            "groups": 3, "dilation_h": 2, "dilation_w": 2, "stride_h": 2, "stride_w": 2, "padding_h": 1}),
        "pixels that no window reads": ((2, 3, 10, 10), (4, 3, 3, 3), {"stride_h": 4, "stride_w": 4}),
        "odd channels": ((2, 3, 7, 9), (5, 3, 2, 2), {}),
        "one by one, strided": ((3, 20, 9, 9), (33, 20, 1, 1), {"stride_h": 2, "stride_w": 2}),
    }

    def test_gradients_of_input_weight_and_bias(self):
        for title, (x, weight, options) in self.CASES.items():
            for bias in (True, False):
                operands = {"x": self.random(*x), "weight": self.random(*weight)}
                if bias:
                    operands["bias"] = self.random(weight[0])
                self.add(title + (" with bias" if bias else ""), operands, lambda o, options=options: F.conv2d(
                    o["x"], o["weight"], o.get("bias"), pair(options, "stride", 1), pair(options, "padding", 0),
                    pair(options, "dilation", 1), options.get("groups", 1)), op="conv2d", **options)
        self.compare_all("conv2d")

    def test_linear(self):
        operands = {"x": self.random(7, 33), "weight": self.random(11, 33), "bias": self.random(11)}
        self.add("linear", operands, lambda o: F.linear(o["x"], o["weight"], o["bias"]), op="linear")
        self.compare_all("linear")


class Pooling(OperatorRow):
    # Kernel, stride, padding, dilation, sizes that do and do not divide.
    SHAPES = [(2, 3, 8, 8), (3, 5, 9, 11), (1, 17, 7, 10)]
    WINDOWS = [
        {"kernel_h": 2, "kernel_w": 2, "stride_h": 2, "stride_w": 2},
        {"kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 2, "padding_h": 1, "padding_w": 1},
        {"kernel_h": 3, "kernel_w": 2, "stride_h": 3, "stride_w": 1, "padding_h": 1, "padding_w": 0},
        {"kernel_h": 2, "kernel_w": 3, "stride_h": 1, "stride_w": 3, "padding_h": 1, "padding_w": 1},
    ]

    def test_max(self):
        for options in self.WINDOWS:
            for ceil_mode in (False, True):
                for dilation in (1, 2):
                    options = {**options, "dilation_h": dilation, "dilation_w": dilation, "ceil_mode": ceil_mode}
                    for shape in self.SHAPES:
                        self.max(shape, options)
        self.compare_all("max pooling")

    def max(self, shape, options):
        self.add(f"{shape}, {options}", {"x": self.random(*shape)}, lambda o: F.max_pool2d(
            o["x"], pair(options, "kernel", 2), pair(options, "stride", 2), pair(options, "padding", 0),
            pair(options, "dilation", 1), options["ceil_mode"]), op="max_pool2d", **options)

    def test_ties_go_to_the_first(self):
        options = {**self.WINDOWS[1], "ceil_mode": True}
        self.add("max pool of zeros and ones", {"x": (self.random(2, 3, 9, 9) > 0).float()}, lambda o: F.max_pool2d(
            o["x"], 3, 2, 1, ceil_mode=True), op="max_pool2d", **options)
        self.compare_all("max pooling with ties")

    def test_average(self):
        for options in self.WINDOWS:
            for ceil_mode in (False, True):
                for count in (False, True):
                    options = {**options, "ceil_mode": ceil_mode, "count_include_pad": count}
                    for shape in self.SHAPES:
                        self.average(shape, options)
        self.compare_all("average pooling")

    def average(self, shape, options):
        self.add(f"{shape}, {options}", {"x": self.random(*shape)}, lambda o: F.avg_pool2d(
            o["x"], pair(options, "kernel", 2), pair(options, "stride", 2), pair(options, "padding", 0),
            options["ceil_mode"], options["count_include_pad"]), op="average_pool2d", **options)

    def test_global_average(self):
        self.add("global average pool", {"x": self.random(3, 5, 7, 9)},
                 lambda o: F.adaptive_avg_pool2d(o["x"], 1), op="global_average_pool2d")
        self.compare_all("global average pooling")


class BatchNorm(OperatorRow):
    CASES = {
        "defaults": ((4, 5, 3, 7), {}),
        "momentum and epsilon": ((3, 16, 5, 5), {"norm_momentum": 0.3, "epsilon": 1e-3}),
        "momentum 1": ((3, 4, 5, 5), {"norm_momentum": 1.0}),
        # Where the unbiased variance is twice the other; a small epsilon would leave only rounding of x's gradient.
        "two values per channel": ((2, 6, 1, 1), {"epsilon": 0.5}),
        "frozen statistics": ((3, 5, 4, 6), {"frozen": True}),
        "vectors": ((9, 5), {}),
        "vectors in whole blocks": ((8, 32), {}),
        "sequences": ((4, 6, 11), {"norm_momentum": 0.3}),
        "volumes": ((2, 5, 3, 4, 2), {}),
        "frozen volumes": ((2, 5, 3, 4, 2), {"frozen": True}),
    }
    MODULES = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}

    def test_output_gradients_and_running_statistics(self):
        for title, (shape, options) in self.CASES.items():
            # Means far from zero: the variance must not be lost in the square of the mean.
            offset = 0 if shape[2:3] == (1,) else 10
            norm = self.MODULES[len(shape)](shape[1], options.get("epsilon", 1e-5), options.get("norm_momentum", 0.1))
            state = {"weight": self.random(shape[1]), "bias": self.random(shape[1]),
                     "running_mean": self.random(shape[1]), "running_var": self.random(shape[1]).abs() + 0.5,
                     "num_batches_tracked": torch.tensor(7)}
            norm.load_state_dict(state)
            weights = {"x": 2 * self.random(*shape) + offset} | {f"bn.{n}": t for n, t in state.items()}
            batch = {"cotangent": self.random(*shape)}
            request = {"op": "batch_norm2d", **options}
            self.cases.append(session.Case(title, functools.partial(
                self.run_torch, norm, weights["x"], batch["cotangent"], request), weights, batch, request))
        self.compare_all("batch norm")

    @staticmethod
    def run_torch(norm, x, cotangent, request, dtype, memory_format):
        fresh = copy.deepcopy(norm).to(dtype)
        x, cotangent = to(x, dtype, memory_format).requires_grad_(), to(cotangent, dtype, memory_format)
        result = {"before": fresh.eval()(x).detach().numpy()}
        fresh.train(not request.get("frozen", False))
        y = fresh(x)
        ((y * cotangent).sum() / len(y)).backward()
        result |= {"output": y.detach().numpy(), "after_training": fresh.eval()(x).detach().numpy()}
        result |= session.as_arrays("gradient/bn.", ((n, p.grad) for n, p in fresh.named_parameters()))
        result |= session.as_arrays("buffer/bn.", fresh.named_buffers())
        result |= session.as_arrays("after/bn.", fresh.state_dict().items())
        return result | session.as_arrays("after/", [("x", x)]) | session.as_arrays("gradient/", [("x", x.grad)])


class Elementwise(OperatorRow):
    def test_unary(self):
        x = self.random(5, 37)
        x[0, :4] = 0
        functions = {"relu": torch.relu, "exp": torch.exp, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
                     "square": torch.square, "abs": torch.abs, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
                     "gelu": F.gelu, "log_sigmoid": F.logsigmoid, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}
        for name, function in functions.items():
            self.add(name, {"x": x}, lambda o, f=function: f(o["x"]), op=name)
        for name, function in {"log": torch.log, "sqrt": torch.sqrt}.items():
            self.add(name, {"x": x.abs() + 0.1}, lambda o, f=function: f(o["x"]), op=name)
        self.compare_all("unary")

    def test_mean_squared_error(self):
        target = self.random(6, 9)
        self.add("mean squared error", {"x": self.random(6, 9)},
                 lambda o: F.mse_loss(o["x"], target.to(o["x"].dtype)), {"target": target},
                 op="mean_squared_error")
        self.compare_all("mean squared error")

    def test_cross_entropy_of_large_logits(self):
        label = torch.tensor([0, 3, 2, 2, 1], dtype=torch.int32)
        for weights in (None, [1.0, 0.25, 3.0, 2.0]):
            for smoothing in (0.0, 0.1, 1.0):
                request = {"label_smoothing": smoothing} | ({"class_weights": weights} if weights else {})
                self.add(f"smoothing {smoothing}, weights {weights}",
                             {"x": 40 * self.random(5, 4)},
                             lambda o, r=request: session.loss_of(r, o["x"].dtype)(o["x"], label), {"label": label},
                         op="cross_entropy", **request)
        self.compare_all("cross entropy of large logits")
