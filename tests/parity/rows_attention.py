"""Attention, its layer, and the cross entropy over a vocabulary: output and the gradient of every operand."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import stateless

from rows_operators import OperatorRow


def formula(q, k, v, hidden, bias=0):
    """softmax(q k / sqrt(D) + bias) v, for (N, T, H, D) and (N, S, G, D)."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5 + bias
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2)


def distances(queries, keys):
    """The position of each query minus that of each key, (T, S)."""
    return torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)


class Attention(OperatorRow):
    def cover(self, title, hidden, bias=0, queries=40, keys=40, heads=4, key_heads=4, **request):
        shape = (3, keys, key_heads, 16)
        operands = {"x": self.random(3, queries, heads, 16), "k": self.random(*shape), "v": self.random(*shape)}
        self.add(title, operands, lambda o: formula(o["x"], o["k"], o["v"], hidden, bias), op="attention", **request)

    def test_masks(self):
        apart = distances(40, 40)
        self.cover("full", torch.tensor(False), queries=24, keys=50)
        self.cover("causal", apart < 0, causal=True)
        self.cover("causal behind a cache", distances(9, 50) < 0, queries=9, keys=50, causal=True)
        self.cover("grouped window", (apart < 0) | (apart >= 7), key_heads=2, causal=True, window=7)
        slopes = torch.tensor([2.0 ** -(2 * h + 2) for h in range(4)])[:, None, None]
        self.cover("ALiBi", apart < 0, bias=-slopes * apart.abs(), causal=True, alibi=True)
        ids = torch.arange(40, dtype=torch.int32).repeat(3, 1) // torch.tensor([[7], [40], [13]], dtype=torch.int32)
        self.cover("packed sequences", (ids[:, None, :, None] != ids[:, None, None, :]), index_shape=[3, 40])
        self.cases[-1].batch["index"] = ids
        self.compare_all("attention")

    def layer(self, title, mask=None, padding=None, memory=None, bias=True, **request):
        module = nn.MultiheadAttention(24, 4, bias=bias, batch_first=True)
        operands = {"x": self.random(3, 20, 24)}
        operands |= {f"layer.{n}": self.random(*p.shape) * 0.2 for n, p in module.named_parameters()}
        if memory:
            operands["memory"] = self.random(3, memory, 24)

        def run(o):
            parameters = {n: o[f"layer.{n}"] for n, _ in module.named_parameters()}
            keys = o.get("memory", o["x"])
            return stateless.functional_call(module, parameters, (o["x"], keys, keys), {
                "attn_mask": mask, "key_padding_mask": padding, "need_weights": False})[0]

        self.add(title, operands, run, op="multihead_attention", features=24, heads=4, bias=bias, **request)

    def test_layer(self):
        self.layer("plain")
        self.layer("without bias", bias=False)
        self.layer("causal", mask=distances(20, 20) < 0, causal=True)
        self.layer("of another sequence", memory=33)
        lengths = torch.tensor([20, 3, 11], dtype=torch.int32)
        self.layer("padded", padding=torch.arange(20) >= lengths[:, None], index_shape=[3])
        self.cases[-1].batch["index"] = lengths
        self.compare_all("multi-head attention")

    def test_vocabulary(self):
        for smoothing in (0.0, 0.1):
            for bias in (False, True):
                operands = {"x": self.random(3, 30, 24), "weight": self.random(150, 24) * 0.3}
                if bias:
                    operands["bias"] = self.random(150)
                index = torch.randint(0, 150, (3, 30), generator=self.generator, dtype=torch.int32)
                index[1, 4:9] = -100
                self.add(f"smoothing {smoothing}" + (", bias" if bias else ""), operands,
                         lambda o, i=index.long(), s=smoothing: F.cross_entropy(
                             F.linear(o["x"], o["weight"], o.get("bias")).flatten(0, 1), i.flatten(),
                             label_smoothing=s).expand(3),
                         op="vocabulary_cross_entropy", label_smoothing=smoothing, index_shape=[3, 30])
                self.cases[-1].batch["index"] = index
        self.compare_all("cross entropy over a vocabulary")
