"""Models of clicks: ten steps of SGD from the same weights, with logits, losses, gradients and weights."""
import unittest

import numpy as np
import torch
from torch.nn import functional as F

import session

FIELDS, ROWS, DENSE, DIM, BATCH, STEPS, RATE = 4, 24, 3, 5, 16, 10, 0.1


def mlp(w, name, x, last=False):
    """Linear layers name.0, name.2, ... with ReLU between them."""
    layers = sorted({int(key.split(".")[1]) for key in w if key.startswith(f"{name}.")})
    for layer in layers:
        x = F.linear(x, w[f"{name}.{layer}.weight"], w[f"{name}.{layer}.bias"])
        if layer != layers[-1] or last:
            x = F.relu(x)
    return x


def pairs(vectors):
    i, j = torch.tril_indices(vectors.shape[1], vectors.shape[1], offset=-1)
    return torch.bmm(vectors, vectors.transpose(1, 2))[:, i, j]


def dlrm(w, dense, ids):
    rows = F.embedding(ids, w["table.weight"])
    vector = mlp(w, "bottom", dense, last=True)
    return mlp(w, "top", torch.cat([vector, pairs(torch.cat([vector[:, None], rows], 1))], 1))[:, 0]


def first_order(w, dense, ids):
    return F.embedding(ids, w["first.ids.weight"]).sum((1, 2)) + F.linear(dense, w["first.dense.weight"], w["first.dense.bias"])[:, 0]


def wide_deep(w, dense, ids):
    rows = F.embedding(ids, w["table.weight"]).flatten(1)
    return first_order(w, dense, ids) + mlp(w, "deep", torch.cat([rows, dense], 1))[:, 0]


def deepfm(w, dense, ids):
    vectors = torch.cat([F.embedding(ids, w["table.weight"]), dense[:, :, None] * w["dense"]], 1)
    return wide_deep(w, dense, ids) + pairs(vectors).sum(1)


def towers(w, dense, ids):
    rows = F.embedding(ids, w["table.weight"])
    user = mlp(w, "user", torch.cat([rows[:, :2].flatten(1), dense], 1))
    item = mlp(w, "item", rows[:, 2:].flatten(1))
    return [v / (v.square().sum(1, keepdim=True) + 1e-12).sqrt() for v in (user, item)]


def product(w, dense, ids):
    user, item = towers(w, dense, ids)
    return (user * item).sum(1) / 0.1


def in_batch(w, dense, ids, label):
    user, item = towers(w, dense, ids)
    scores = user @ item.T / 0.1
    same = (ids[:, 2:3] == ids[:, 2]) & ~torch.eye(len(ids), dtype=torch.bool)
    losses = F.cross_entropy(scores.masked_fill(same, -torch.inf), torch.arange(len(ids)), reduction="none")
    return (losses * label).sum() / label.sum()


def bce(model):
    return lambda w, dense, ids, label: F.binary_cross_entropy_with_logits(model(w, dense, ids), label)


def shapes(name, *sizes):
    layers = {}
    for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        layers |= {f"{name}.{2 * i}.weight": (outputs, inputs), f"{name}.{2 * i}.bias": (outputs,)}
    return layers


TABLE = {"table.weight": (ROWS, DIM)}
FIRST = {"first.ids.weight": (ROWS, 1), "first.dense.weight": (1, DENSE), "first.dense.bias": (1,)}
VECTORS = FIELDS + 1
TOWERS = TABLE | shapes("user", 2 * DIM + DENSE, 6, DIM) | shapes("item", 2 * DIM, 6, DIM)
CASES = {
    "dlrm": ({"click_model": "dlrm", "bottom": [7], "top": [8, 6]}, dlrm, bce(dlrm),
             TABLE | shapes("bottom", DENSE, 7, DIM) | shapes("top", VECTORS * (VECTORS - 1) // 2 + DIM, 8, 6, 1)),
    "wide-deep": ({"click_model": "wide-deep", "top": [8]}, wide_deep, bce(wide_deep), TABLE | FIRST | shapes("deep", FIELDS * DIM + DENSE, 8, 1)),
    "deepfm": ({"click_model": "deepfm", "top": [8]}, deepfm, bce(deepfm),
               TABLE | FIRST | {"dense": (DENSE, DIM)} | shapes("deep", FIELDS * DIM + DENSE, 8, 1)),
    "towers": ({"click_model": "towers", "top": [6], "user_fields": 2}, product, bce(product), TOWERS),
    "softmax": ({"click_model": "towers", "top": [6], "user_fields": 2, "loss": "softmax"}, product, in_batch, TOWERS),
}


class ClickModels(unittest.TestCase):
    def test_ten_steps(self):
        generator = torch.Generator().manual_seed(5)
        batch = {"dense": torch.randn(STEPS * BATCH, DENSE, generator=generator),
                 "ids": torch.randint(ROWS, (STEPS * BATCH, FIELDS), generator=generator, dtype=torch.int32),
                 "label": torch.randint(2, (STEPS * BATCH,), generator=generator).float()}
        request = {"dense": DENSE, "fields": FIELDS, "rows": ROWS, "dim": DIM, "steps": STEPS, "lr": RATE, "precision": "f64"}
        weights = {name: {key: 0.5 * torch.randn(shape, generator=generator, dtype=torch.float64) for key, shape in sizes.items()}
                   for name, (_, _, _, sizes) in CASES.items()}
        ours = session.lockstep(*((weights[name], batch, request | own) for name, (own, _, _, _) in CASES.items()))
        for (name, (_, model, loss_of, _)), run in zip(CASES.items(), ours):
            with self.subTest(name):
                w = {key: value.clone().requires_grad_() for key, value in weights[name].items()}
                losses = []
                for s in range(STEPS):
                    part = slice(s * BATCH, (s + 1) * BATCH)
                    dense, ids, label = batch["dense"][part].double(), batch["ids"][part].long(), batch["label"][part].double()
                    if s == 0:
                        np.testing.assert_allclose(run["output"], model(w, dense, ids).detach().numpy(), rtol=1e-10, atol=1e-12)
                    loss = loss_of(w, dense, ids, label)
                    gradients = torch.autograd.grad(loss, list(w.values()))
                    losses.append(loss.item())
                    for (key, value), gradient in zip(w.items(), gradients):
                        if s == 0:
                            np.testing.assert_allclose(run[f"gradient/{key}"], gradient.numpy(), rtol=1e-8, atol=1e-11, err_msg=key)
                        value.data -= RATE * gradient
                np.testing.assert_allclose(run["losses"], losses, rtol=1e-9)
                for key, value in w.items():
                    np.testing.assert_allclose(run[f"after/{key}"], value.detach().numpy(), rtol=1e-7, atol=1e-10, err_msg=key)
