"""Models of fields and series: outputs, loss, gradients and weights after some steps, against bench/torch_fields.py."""
import pathlib
import sys
import unittest

import torch

import session

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import torch_fields  # noqa: E402


class FieldModels(unittest.TestCase):
    SAMPLES, STEPS = 4, 3
    CASES = {
        "unet, 2-D": ("unet", {"inputs": (2, 16, 8), "outputs": (1, 16, 8), "width": 4, "depth": 2}),
        "unet, 3-D": ("unet", {"inputs": (1, 8, 4, 8), "outputs": (2, 8, 4, 8), "width": 4, "depth": 2}),
        "cosmoflow": ("cosmoflow", {"inputs": (2, 16, 8, 12), "outputs": (3,), "width": 4, "depth": 2}),
        "encoder": ("encoder", {"inputs": (16, 3), "outputs": (4, 3), "width": 32, "depth": 2}),
        "lstm": ("lstm", {"inputs": (10, 3), "outputs": (2,), "width": 8, "depth": 2}),
        "fno": ("fno", {"inputs": (1, 12, 10), "outputs": (2, 12, 10), "width": 4, "depth": 2, "modes": 4}),
    }

    def case(self, title, name, config):
        torch.manual_seed(1)
        generator = torch.Generator().manual_seed(2)
        model = torch_fields.MODELS[name](**config)
        weights = {key: t.clone() for key, t in model.state_dict().items()}
        rows = self.SAMPLES * self.STEPS
        batch = {"input": torch.randn((rows, *config["inputs"]), generator=generator),
                 "target": torch.randn((rows, *config["outputs"]), generator=generator)}
        request = {"field_model": name, "steps": self.STEPS, "lr": 1e-3, "momentum": 0.9} | config
        return session.Case(title, lambda *how: session.torch_model(model, batch, request, *how), weights, batch, request,
                            is_deep=True)

    def test_some_steps(self):
        session.compare(self, "field models", [self.case(title, *of) for title, of in self.CASES.items()])

    def test_benched_models_are_as_large(self):
        for name, (model, config) in torch_fields.ROWS.items():
            with self.subTest(name):
                torch_model = torch_fields.MODELS[model](**config)
                want = {key: list(t.shape) for key, t in torch_model.state_dict().items()}
                names = session.ask({"task": "names", "field_model": model} | config)[0]
                self.assertEqual({key: shape for key, shape, _ in names}, want)
