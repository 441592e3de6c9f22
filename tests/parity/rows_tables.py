"""Sparse tables: ten steps of nn.EmbeddingBag(sparse=True) with PyTorch's rules for sparse gradients."""
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import session

ROWS, WIDTH, BAGS, CAPACITY, STEPS, RATE = 60, 5, 16, 4, 10, 0.05


class SparseTables(unittest.TestCase):
    RULES = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}

    def inputs(self):
        generator = torch.Generator().manual_seed(3)
        weights = {"bag.weight": torch.randn(ROWS, WIDTH, generator=generator),
                   "out.weight": torch.randn(1, WIDTH, generator=generator), "out.bias": torch.zeros(1)}
        weights["bag.weight"][0] = 0
        # Few numbers, of which some are used often: rows meet again, and some rows never.
        ids = torch.randint(ROWS // 2, (STEPS * BAGS, CAPACITY), generator=generator, dtype=torch.int32)
        ids[3] = 0  # a bag without entries
        return weights, {"ids": ids, "target": torch.randn(STEPS * BAGS, 1, generator=generator)}

    def torch_run(self, weights, batch, mode, rule, dtype):
        bag = nn.EmbeddingBag(ROWS, WIDTH, mode=mode, padding_idx=0, sparse=mode != "max").to(dtype)
        out = nn.Linear(WIDTH, 1).to(dtype)
        with torch.no_grad():
            bag.weight.copy_(weights["bag.weight"])
            out.weight.copy_(weights["out.weight"])
            out.bias.copy_(weights["out.bias"])
        steps = [self.RULES[rule](bag.parameters(), lr=RATE), torch.optim.SGD(out.parameters(), lr=RATE)]
        losses = []
        for s in range(STEPS):
            part = slice(s * BAGS, (s + 1) * BAGS)
            loss = F.mse_loss(out(bag(batch["ids"][part])), batch["target"][part].to(dtype))
            for optimizer in steps:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in steps:
                optimizer.step()
            losses.append(loss.item())
        return np.array(losses), bag.weight.detach().numpy()

    def test_ten_steps(self):
        weights, batch = self.inputs()
        # The maximum has no sparse gradient in PyTorch: its dense one with SGD and Adagrad changes touched rows alone.
        cases = [(mode, rule) for mode in ("sum", "mean", "max") for rule in self.RULES
                 if (mode, rule) != ("max", "adam")]
        request = {"rows": ROWS, "width": WIDTH, "padding": 0, "steps": STEPS, "lr": RATE}
        ours = session.lockstep(*((weights, batch, request | {"bag": mode, "table_optimizer": rule, "precision": "f64"})
                                  for mode, rule in cases))
        for (mode, rule), run in zip(cases, ours):
            with self.subTest(mode=mode, rule=rule):
                losses, rows = self.torch_run(weights, batch, mode, rule, torch.float64)
                np.testing.assert_allclose(run["losses"], losses, rtol=1e-10)
                np.testing.assert_allclose(run["after/bag.weight"], rows, rtol=1e-9, atol=1e-12)
                self.assertGreater(np.abs(rows - weights["bag.weight"].numpy()).max(), 1e-3)
