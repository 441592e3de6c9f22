"""Recurrent layers and Fourier transforms: output and the gradient of every operand."""
import torch
from torch import nn

from rows_operators import OperatorRow


def last_state(states, directions):
    """The last layer's, (N, directions * hidden)."""
    return states[-directions:].transpose(0, 1).flatten(1)


class Recurrent(OperatorRow):
    SETTINGS = [
        {"in": 5, "hidden": 7},
        {"in": 3, "hidden": 40, "layers": 2},
        {"in": 4, "hidden": 6, "bidirectional": True, "layers": 2},
        {"in": 4, "hidden": 6, "bias": False},
    ]

    def operands(self, kind, setting, samples=6, steps=9):
        module = self.module(kind, setting)
        scale = module.hidden_size ** -0.5
        names = {f"rnn.{n}": 2 * scale * self.random(*p.shape) for n, p in module.named_parameters()}
        return {"x": self.random(samples, steps, setting["in"])} | names

    @staticmethod
    def module(kind, setting):
        return {"lstm": nn.LSTM, "gru": nn.GRU}[kind](
            setting["in"], setting["hidden"], setting.get("layers", 1), bias=setting.get("bias", True),
            batch_first=True, bidirectional=setting.get("bidirectional", False))

    @classmethod
    def run_layer(cls, kind, setting, read, o):
        """What the modules' forward() calls, on the operands instead of the module's own parameters."""
        module = cls.module(kind, setting)
        directions = 2 if module.bidirectional else 1
        flat = [o[f"rnn.{n}"] for n, _ in module.named_parameters()]
        zeros = o["x"].new_zeros(directions * module.num_layers, len(o["x"]), module.hidden_size)
        h, c = (o[n][None] if n in o else zeros for n in ("h", "c"))
        settings = (flat, module.bias, module.num_layers, 0.0, True, module.bidirectional, True)
        y, *states = (torch._VF.lstm(o["x"], (h, c), *settings) if kind == "lstm"
                      else torch._VF.gru(o["x"], h, *settings))
        return y if read == "y" else last_state(states["hc".index(read)], directions)

    def cover(self, title, kind, setting, operands, read="y"):
        self.add(f"{kind}, {title}", operands, lambda o: self.run_layer(kind, setting, read, o), op=kind, read=read,
                 **setting)

    def test_sequences(self):
        for kind in ("lstm", "gru"):
            for setting in self.SETTINGS:
                self.cover(str(setting), kind, setting, self.operands(kind, setting))
            self.cover("one sample of one step", kind, self.SETTINGS[0], self.operands(kind, self.SETTINGS[0], 1, 1))
        self.compare_all("recurrent layers")

    def test_states(self):
        for kind, reads in {"lstm": "hc", "gru": "h"}.items():
            for setting in self.SETTINGS:
                for read in reads:
                    self.cover(f"{setting}, last {read}", kind, setting, self.operands(kind, setting), read)
            setting = self.SETTINGS[0]
            initial = {n: self.random(6, setting["hidden"]) for n in reads}
            self.cover("initial states", kind, setting, self.operands(kind, setting) | initial)
        self.compare_all("states of recurrent layers")


class Fourier(OperatorRow):
    NORMS = ("backward", "ortho", "forward")

    @staticmethod
    def axes(count):
        return tuple(range(-count, 0))

    def test_complex(self):
        for op, function in {"fft": torch.fft.fftn, "ifft": torch.fft.ifftn}.items():
            for axes, shape in {1: (5, 3, 24, 2), 2: (4, 9, 10, 2), 3: (3, 4, 5, 6, 2)}.items():
                for norm in self.NORMS:
                    self.add(f"{op} of {shape}, {norm}", {"x": self.random(*shape)},
                             lambda o, f=function, a=axes, n=norm: torch.view_as_real(
                                 f(torch.view_as_complex(o["x"].contiguous()), dim=self.axes(a), norm=n)),
                             op=op, axes=axes, norm=norm)
        self.compare_all("complex transforms")

    def test_real(self):
        for axes, shape in {1: (5, 3, 31), 2: (4, 9, 10), 3: (3, 2, 4, 5, 6)}.items():
            for norm in self.NORMS:
                self.add(f"rfft of {shape}, {norm}", {"x": self.random(*shape)},
                         lambda o, a=axes, n=norm: torch.view_as_real(
                             torch.fft.rfftn(o["x"].contiguous(), dim=self.axes(a), norm=n)),
                         op="rfft", axes=axes, norm=norm)
        self.compare_all("transforms of real values")

    def test_to_real(self):
        for sizes, shape in {(24,): (5, 3, 13, 2), (9,): (6, 5, 2), (4, 10): (3, 4, 6, 2),
                             (3, 4, 7): (3, 3, 4, 4, 2)}.items():
            for norm in self.NORMS:
                self.add(f"irfft to {sizes}, {norm}", {"x": self.random(*shape)},
                         lambda o, s=sizes, n=norm: torch.fft.irfftn(
                             torch.view_as_complex(o["x"].contiguous()), s=s, dim=self.axes(len(s)), norm=n),
                         op="irfft", sizes=list(sizes), norm=norm)
        self.compare_all("transforms to real values")

    def test_spectral_product(self):
        for title, x, weight in (("one axis", (4, 3, 9, 2), (3, 5, 9, 2)), ("two axes", (4, 8, 6, 7, 2), (8, 8, 6, 7, 2))):
            self.add(title, {"x": self.random(*x), "weight": self.random(*weight)},
                     lambda o: torch.view_as_real(torch.einsum(
                         "ni...,io...->no...", *(torch.view_as_complex(o[n].contiguous()) for n in ("x", "weight")))),
                     op="spectral_product")
        self.compare_all("products of spectra")
