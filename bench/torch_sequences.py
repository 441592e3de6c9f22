"""The models of sequences of models/zoo in PyTorch, with the zoo's names: what bench/torch_step.py times beside
bench_step and tests/parity compares. Attention is F.scaled_dot_product_attention where PyTorch has it."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def attend(q, k, v, bias=None):
    """Causal attention of (N, H, T, D)."""
    if bias is None and hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


def turned(x):
    """Rotary positions of (N, H, T, D), pairs (i, i + D / 2)."""
    half = x.shape[-1] // 2
    frequency = 10000 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def alibi(heads, steps, dtype):
    """Biases (H, T, T) for a power of two of heads."""
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)
    position = torch.arange(steps, dtype=torch.float64)
    return (-slopes[:, None, None] * (position[:, None] - position[None, :]).abs()).to(dtype)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.keys = c["heads"], c.get("key_heads") or c["heads"]
        self.size, self.positions = c["width"] // c["heads"], c.get("positions", "learned")
        bias = not c.get("no_bias", False)
        self.c_attn = nn.Linear(c["width"], (self.heads + 2 * self.keys) * self.size, bias=bias)
        self.c_proj = nn.Linear(c["width"], c["width"], bias=bias)

    def forward(self, x):
        n, steps, width = x.shape
        parts = self.c_attn(x).split([heads * self.size for heads in (self.heads, self.keys, self.keys)], 2)
        q, k, v = (part.view(n, steps, -1, self.size).transpose(1, 2) for part in parts)
        if self.positions == "rotary":
            q, k = turned(q), turned(k)
        if self.keys < self.heads:
            k, v = (part.repeat_interleave(self.heads // self.keys, 1) for part in (k, v))
        bias = alibi(self.heads, steps, x.dtype) if self.positions == "alibi" else None
        return self.c_proj(attend(q, k, v, bias).transpose(1, 2).reshape(n, steps, width))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        bias = not c.get("no_bias", False)
        self.c_fc = nn.Linear(c["width"], 4 * c["width"], bias=bias)
        self.c_proj = nn.Linear(4 * c["width"], c["width"], bias=bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class SwiGLU(nn.Module):
    def __init__(self, c):
        super().__init__()
        bias, hidden = not c.get("no_bias", False), -(-(8 * c["width"] // 3) // 32) * 32
        self.gate_proj = nn.Linear(c["width"], hidden, bias=bias)
        self.up_proj = nn.Linear(c["width"], hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, c["width"], bias=bias)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Norm(nn.Module):
    """Layer norm without a bias, or RMS norm."""

    def __init__(self, width, centred):
        super().__init__()
        self.weight, self.centred = nn.Parameter(torch.ones(width)), centred

    def forward(self, x):
        if self.centred:
            return F.layer_norm(x, self.weight.shape, self.weight)
        return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.weight


def norm(c):
    centred = c.get("norm", "layer") == "layer"
    return nn.LayerNorm(c["width"]) if centred and not c.get("no_bias", False) else Norm(c["width"], centred)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = norm(c), Attention(c), norm(c)
        self.mlp = SwiGLU(c) if c.get("mlp") == "swiglu" else Mlp(c)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, **c):
        super().__init__()
        parts = {"wte": nn.Embedding(c["vocabulary"], c["width"])}
        if c.get("positions", "learned") == "learned":
            parts["wpe"] = nn.Embedding(c["context"], c["width"])
        parts |= {"h": nn.ModuleList(Block(c) for _ in range(c["layers"])), "ln_f": norm(c)}
        self.transformer = nn.ModuleDict(parts)
        self.lm_head = nn.Linear(c["width"], c["vocabulary"], bias=False)
        if not c.get("untied", False):
            self.lm_head.weight = self.transformer.wte.weight
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * c["layers"]) if name.endswith("proj.weight") else 0.02)

    def forward(self, tokens):
        """Logits (N, T, vocabulary)."""
        tokens = tokens.long()
        x = self.transformer.wte(tokens)
        if "wpe" in self.transformer:
            x = x + self.transformer.wpe.weight[:tokens.shape[1]]
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


class EncoderBlock(nn.Module):
    """torchvision's, of ViT."""

    def __init__(self, width, heads, epsilon):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Identity(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class SeriesEncoder(nn.Module):
    """For series whose steps fill patches of 4."""

    def __init__(self, inputs, outputs, width, depth):
        super().__init__()
        self.tokens, self.outputs, self.depth = inputs[0] // 4, outputs, depth
        self.position = nn.Parameter(0.02 * torch.randn(self.tokens, width))
        self.embed = nn.Linear(4 * inputs[1], width)
        for i in range(depth):
            setattr(self, f"block{i}", EncoderBlock(width, width // 16, 1e-5))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(self.tokens * width, math.prod(outputs))

    def forward(self, x):
        x = self.embed(x.reshape(len(x), self.tokens, -1)) + self.position
        for i in range(self.depth):
            x = getattr(self, f"block{i}")(x)
        return self.head(self.norm(x).flatten(1)).view(len(x), *self.outputs)


# The rows of bench/subject.h: bytes, as train_gpt has them without a vocabulary.
ROWS = {"gpt": {"vocabulary": 257, "context": 256, "layers": 6, "heads": 6, "width": 384}}
