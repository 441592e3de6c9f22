"""GPT with its options: logits, loss, every gradient and weights after ten steps, against bench/torch_sequences.py. The
first case has its weights from scripts/gpt2_weights.py, out of tensors as Hugging Face names and lays out GPT-2's."""
import math
import pathlib
import sys
import unittest

import torch
from torch.nn import functional as F

import session

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench"), str(ROOT / "scripts")]
import gpt2_weights  # noqa: E402
import torch_sequences  # noqa: E402


def as_hugging_face(weights, context):
    """The tensors of a GPT2Model, with its masks, in another order."""
    state = {}
    for name, tensor in weights.items():
        if name != "lm_head.weight":
            state[name.removeprefix("transformer.")] = tensor.t().contiguous() if name.endswith(gpt2_weights.TRANSPOSED) else tensor
    for name in [name for name in state if name.endswith(".ln_1.weight")]:
        state[name.replace("ln_1.weight", "attn.bias")] = torch.ones(context, context).tril()[None, None]
        state[name.replace("ln_1.weight", "attn.masked_bias")] = torch.tensor(-1e4)
    return dict(sorted(state.items()))


def gpt2_logits(state, tokens, layers, heads):
    """GPT-2 by its formulas, of Hugging Face's tensors: a Conv1D is x @ weight + bias."""
    def layer(x, name):
        return x @ state[name + ".weight"] + state[name + ".bias"]

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], state[name + ".weight"], state[name + ".bias"])

    x = state["wte.weight"][tokens.long()] + state["wpe.weight"][:tokens.shape[1]]
    for i in range(layers):
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in layer(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(state[f"h.{i}.attn.bias"] == 0, float("-inf"))
        x = x + layer((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), f"h.{i}.attn.c_proj")
        y = layer(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + layer(y, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ state["wte.weight"].t()


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
        if not options:
            tokens = batch["tokens"]
            state = {name: t.double() for name, t in as_hugging_face(weights, config["context"]).items()}
            logits = gpt2_logits(state, tokens, config["layers"], config["heads"])
            torch.testing.assert_close(logits, model.double()(tokens), rtol=1e-12, atol=1e-12)
            model.float()
            weights = gpt2_weights.convert(state)
        request = {"gpt": config, "steps": self.STEPS, "optimizer": "adamw", "lr": 1e-4, "weight_decay": 1e-2}
        return session.Case(title, lambda *how: session.torch_model(model, batch, request, *how), weights, batch, request)

    def test_ten_steps(self):
        session.compare(self, "gpt", [self.case(*of) for of in self.CASES.items()])
