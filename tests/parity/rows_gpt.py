"""GPT with its options: logits, loss, every gradient and weights after ten steps, against bench/torch_sequences.py."""
import pathlib
import sys
import unittest

import torch

import session

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import torch_sequences  # noqa: E402


class Gpt(unittest.TestCase):
    SAMPLES, STEPS = 3, 10
    SIZE = {"vocabulary": 13, "context": 12, "layers": 2, "heads": 4, "width": 32}
    CASES = {
        "as GPT-2": {},
        "as Llama": {"positions": "rotary", "norm": "rms", "mlp": "swiglu", "key_heads": 2, "no_bias": True, "untied": True},
        "ALiBi, one key head": {"positions": "alibi", "key_heads": 1},
        "no biases": {"no_bias": True},
    }

    def case(self, title, options):
        config = self.SIZE | options
        torch.manual_seed(1)
        generator = torch.Generator().manual_seed(2)
        model = torch_sequences.Gpt(**config)
        with torch.no_grad():
            for p in model.parameters():  # larger than initial values, so that every term counts
                p.add_(0.1 * torch.randn(p.shape, generator=generator))
        weights = {name: t.clone() for name, t in model.state_dict().items()}
        shape = (self.SAMPLES * self.STEPS, config["context"])
        batch = {name: torch.randint(config["vocabulary"], shape, generator=generator, dtype=torch.int32)
                 for name in ("tokens", "targets")}
        request = {"gpt": config, "steps": self.STEPS, "optimizer": "adamw", "lr": 1e-4, "weight_decay": 1e-2}
        return session.Case(title, lambda *how: session.torch_model(model, batch, request, *how), weights, batch, request)

    def test_ten_steps(self):
        session.compare(self, "gpt", [self.case(*of) for of in self.CASES.items()])
