"""Ops that move elements, indices, and activations with constants: output and the gradient of every operand."""
import torch
from torch.nn import functional as F

from rows_operators import OperatorRow


class Shapes(OperatorRow):
    def add_one(self, title, shape, function, **request):
        self.add(title, {"x": self.random(*shape)}, lambda o: function(o["x"]), **request)

    def test_slices(self):
        self.add_one("with steps", (4, 7, 6), lambda x: x[1:3, 0:7:3, 2:6:2], op="slice",
                     ranges=[[1, 2, 1], [0, 3, 3], [2, 2, 2]])
        self.add_one("flip", (4, 3, 5), lambda x: torch.flip(x, (0, 2)), op="flip", axes=[0, 2])
        self.add_one("roll", (4, 3, 5), lambda x: torch.roll(x, (1, -7), (0, -1)), op="roll", shifts=[1, -7], axes=[0, -1])
        self.compare_all("slices")

    def test_padding(self):
        shapes = {"constant": [((3, 4), (1, 2, 3, 1)), ((3, 4), (-1, 2)), ((2, 3, 4, 5), (-1, 0, 2, -2))],
                  "reflect": [((2, 3, 5), (2, 4)), ((2, 3, 5, 4), (3, 1, 0, 4)), ((1, 2, 4, 3, 4), (1, 2, 2, 1, 3, 0))],
                  "replicate": [((2, 3, 5), (2, 6)), ((2, 3, 5, 4), (3, 1, 0, 4)), ((1, 2, 4, 3, 4), (1, 2, 2, 1, 3, 0))],
                  "circular": [((2, 3, 5), (2, 5)), ((2, 3, 5, 4), (3, 4, 0, 4)), ((1, 2, 4, 3, 4), (1, 2, 2, 1, 3, 0))]}
        for mode, cases in shapes.items():
            for shape, padding in cases:
                value = 0.75 if mode == "constant" else 0.0
                self.add_one(f"{mode} {shape} {padding}", shape,
                             lambda x, p=padding, m=mode, v=value: F.pad(x, p, m, v), op="pad", padding=padding,
                             mode=mode, value=value)
        self.compare_all("padding")

    def test_joined_and_cut(self):
        operands = {"x": self.random(3, 4, 2), "y": self.random(3, 2, 2)}
        self.add("concat", operands, lambda o: torch.cat((o["x"], o["y"]), 1), op="concat", axis=1)
        operands = {"x": self.random(3, 4), "y": self.random(3, 4)}
        self.add("stack", operands, lambda o: torch.stack((o["x"], o["y"]), -1), op="stack", axis=-1)
        self.add_one("split", (3, 7), lambda x: torch.split(x, (2, 4, 1), 1)[1], op="split", sizes=[2, 4, 1], axis=1, part=1)
        for parts, part in ((3, 2), (4, 3), (5, 0)):
            self.add_one(f"chunk {parts}", (3, 7), lambda x, n=parts, k=part: torch.chunk(x, n, -1)[k], op="chunk",
                         parts=parts, part=part, axis=-1)
        self.compare_all("joined and cut")

    def test_axes(self):
        self.add_one("permute", (3, 4, 2, 5), lambda x: x.permute(3, 0, 2, 1), op="permute", axes=[3, 0, 2, 1])
        self.add_one("pixel shuffle", (2, 18, 3, 4), lambda x: F.pixel_shuffle(x, 3), op="pixel_shuffle", factor=3)
        self.add_one("pixel unshuffle", (2, 3, 6, 4), lambda x: F.pixel_unshuffle(x, 2), op="pixel_unshuffle", factor=2)
        self.compare_all("axes")


class Indices(OperatorRow):
    def add_indexed(self, title, x, index, function, **request):
        """The batch has the indices beside the cotangent."""
        operands = {"x": x}
        self.add(title, operands, lambda o: function(o["x"], index.long()), index_shape=list(index.shape), **request)
        self.cases[-1].batch["index"] = index

    def test_rows_and_elements(self):
        index = torch.tensor([3, 0, 0, 2, 3], dtype=torch.int32)
        self.add_indexed("index_select", self.random(5, 4, 3), index, lambda x, i: torch.index_select(x, 1, i),
                         op="index_select", axis=1)
        index = torch.randint(0, 4, (3, 5, 2), generator=self.generator, dtype=torch.int32)
        self.add_indexed("gather", self.random(3, 4, 2), index, lambda x, i: torch.gather(x, 1, i), op="gather", axis=1)
        self.compare_all("rows and elements")

    def test_embedding(self):
        index = torch.randint(0, 9, (4, 6), generator=self.generator, dtype=torch.int32)
        self.add_indexed("embedding", self.random(9, 5), index, lambda x, i: F.embedding(i, x), op="embedding")
        self.add_indexed("with padding", self.random(9, 5), index, lambda x, i: F.embedding(i, x, padding_idx=3),
                         op="embedding", padding_idx=3)
        self.compare_all("embedding")


class Activations(OperatorRow):
    def test_with_and_without_constants(self):
        x = 3 * self.random(5, 37)
        x[0, :4] = 0
        # PyTorch 1.13 multiplies the gradient of F.hardsigmoid by 1/6 rounded to f32, in f64 too.
        functions = {"silu": F.silu, "relu6": F.relu6, "hard_sigmoid": lambda x: F.relu6(x + 3) / 6,
                     "hard_swish": F.hardswish}
        for name, function in functions.items():
            self.add(name, {"x": x}, lambda o, f=function: f(o["x"]), op=name)
        self.add("reciprocal", {"x": x.abs() + 0.5}, lambda o: torch.reciprocal(o["x"]), op="reciprocal")
        with_constants = {
            "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), [0.2]), "elu": (lambda x: F.elu(x, 1.5), [1.5]),
            "softplus": (lambda x: F.softplus(x, 2, 5), [2, 5]), "clamp": (lambda x: torch.clamp(x, -0.5, 0.8), [-0.5, 0.8])}
        for name, (function, constants) in with_constants.items():
            self.add(name, {"x": x}, lambda o, f=function: f(o["x"]), op=name, constants=constants)
        self.add("softplus of large numbers", {"x": 200 * x}, lambda o: F.softplus(o["x"]), op="softplus",
                 constants=[1, 20])
        self.compare_all("activations")

    def test_where(self):
        operands = {"x": self.random(6, 5), "y": self.random(6, 5)}
        self.add("where x > y", operands, lambda o: torch.where(o["x"] > o["y"], o["x"] * o["y"], o["y"]),
                 op="where_greater")
        mask = torch.randint(-1, 2, (6, 1), generator=self.generator, dtype=torch.int32)
        self.add("where a label", operands, lambda o: torch.where(mask.bool(), o["x"], o["y"]), op="where_label",
                 index_shape=[6, 1])
        self.cases[-1].batch["index"] = mask
        self.compare_all("where")
