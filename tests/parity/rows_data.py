"""What happens to images on the way into a batch."""
import pathlib
import tempfile
import unittest

import numpy as np
import torch
from torch.nn import functional as F
from torchvision.transforms import functional as vision

import judge
import session


class Resize(unittest.TestCase):
    """--resize against torchvision's resize of tensors; where images grow, also against plain interpolation."""

    CASES = {(3, 32, 32): 224, (1, 28, 28): 64, (3, 13, 21): 33, (3, 40, 30): 17, (1, 31, 8): 5, (2, 7, 7): 7}

    def scaled(self, images, side):
        with tempfile.TemporaryDirectory() as folder:
            batch, output = (str(pathlib.Path(folder) / name) for name in ("batch.h5", "output.h5"))
            session.write(batch, [images])
            session.ask({"task": "resize", "batch": batch, "batch_part": "0/", "output": output, "side": side})
            return session.read(output)

    def test_is_torchvisions(self):
        generator = torch.Generator().manual_seed(5)
        for shape, side in self.CASES.items():
            with self.subTest(shape=shape, side=side):
                exact = torch.rand((2, *shape), generator=generator, dtype=torch.float64)
                ours = self.scaled({"f32": exact.float(), "f64": exact}, side)
                want = vision.resize(exact, side, antialias=True).numpy()
                own = judge.relative(vision.resize(exact.float(), side, antialias=True).numpy(), want)
                self.assertEqual(ours["f64"].shape, want.shape)
                self.assertLessEqual(max(judge.relative(ours["f64"], want)), judge.F64)
                error = judge.relative(ours["f32"], want)
                self.assertTrue((error <= judge.FACTORS * own + judge.FLOOR).all(), f"{error}, PyTorch's are {own}")
                if side >= max(shape[1:]):
                    plain = F.interpolate(exact, size=want.shape[2:], mode="bilinear", align_corners=False).numpy()
                    self.assertLessEqual(np.abs(ours["f64"] - plain).max(), 1e-12)
