"""Names, weights that move in both directions, and schedules."""
import contextlib
import pathlib
import tempfile
import unittest
from unittest import mock

import h5py
import numpy as np
import torch
import torchvision

import judge
import session
import torch_models


@contextlib.contextmanager
def without_values():
    """Models are built without their initial values, which take most of the time."""
    with contextlib.ExitStack() as stack:
        for name in ("kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_"):
            stack.enter_context(mock.patch.object(torch.nn.init, name))
        yield


class Names(unittest.TestCase):
    def test_are_torchs_in_its_order_with_its_shapes(self):
        depths = [f"resnet{d}" for d in (18, 34, 50, 101, 152)] + ["resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2",
                                                                   "densenet121", "densenet161", "mobilenet_v2"]
        names = (*depths, "resnet18_cifar", "resnet50_cifar", "resnet20", "resnet110", "toy", "mnist_mlp")
        for name, got in zip(names, session.ask(*({"task": "names", "model": name} for name in names))):
            with self.subTest(name), without_values():
                model = torch_models.build(name, 1000 if name in depths else 10)
                want = [[n, list(t.shape), not t.is_floating_point()] for n, t in model.state_dict().items()]
                self.assertEqual(got, want)


class Weights(unittest.TestCase):
    """The snippets of docs/pytorch.md, run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "weights.h5"
        self.generator = torch.Generator().manual_seed(5)

    def batch(self, samples, image):
        return {"image": torch.randn((samples, *image), generator=self.generator),
                "label": torch.randint(10, (samples,), generator=self.generator, dtype=torch.int32)}

    def test_from_lockstep_to_torch(self):
        for name, image in (("resnet18", [3, 64, 48]), ("resnet50", [3, 48, 64]), ("resnet20", [3, 32, 32]),
                            ("toy", [3, 32, 32])):
            with self.subTest(name):
                batch = self.batch(4, image)
                request = {"model": name, "classes": 10, "image": image, "seed": 11, "lr": 1e-3,
                           "save_weights": str(self.path)}
                trained = session.lockstep((None, batch, request))[0]
                model = torch_models.build(name, 10)
                with h5py.File(self.path, "r") as file:
                    state = {key: torch.from_numpy(np.asarray(value[()])) for key, value in file.items()}
                self.assertTrue(all(state[k].dtype == v.dtype for k, v in model.state_dict().items()))
                model.load_state_dict(state, strict=True)
                if name != "toy":
                    self.assertEqual(model.bn1.num_batches_tracked.item(), 1)
                model.eval()
                with torch.no_grad():
                    single = model(batch["image"]).numpy()
                    truth = model.double()(batch["image"].double()).numpy()
                self.same_logits(trained["after_training"], single, truth)

    def test_from_a_checkpoint_to_torch(self):
        batch = self.batch(4, [3, 32, 32])
        request = {"model": "resnet20", "classes": 10, "image": [3, 32, 32], "lr": 1e-3, "momentum": 0.9,
                   "save_checkpoint": str(self.path)}
        trained = session.lockstep((None, batch, request))[0]
        model = torch_models.build("resnet20", 10)
        with h5py.File(self.path, "r") as file:
            state = {key: torch.from_numpy(np.asarray(value[()])) for key, value in file["model"].items()}
            self.assertEqual(set(file["optimizer/momentum"]), {name for name, _ in model.named_parameters()})
        model.load_state_dict(state)
        model.eval()
        with torch.no_grad():
            single = model(batch["image"]).numpy()
            truth = model.double()(batch["image"].double()).numpy()
        self.same_logits(trained["after_training"], single, truth)

    def test_from_torch_to_lockstep(self):
        model = torchvision.models.resnet18(num_classes=10)
        torch_models.settle(model, [3, 64, 64], self.generator)
        model.eval()
        with h5py.File(self.path, "w") as file:
            for name, tensor in model.state_dict().items():
                file[name] = tensor.numpy()
        batch = self.batch(4, [3, 64, 64])
        request = {"model": "resnet18", "classes": 10, "image": [3, 64, 64], "weights": str(self.path)}
        got = session.lockstep((None, batch, request))[0]
        with torch.no_grad():
            single = model(batch["image"]).numpy()
            truth = model.double()(batch["image"].double()).numpy()
        self.same_logits(got["before"], single, truth)

    def test_of_another_model_are_refused_by_name(self):
        state = torchvision.models.resnet18(num_classes=10).state_dict()
        cases = {"missing": ("1 missing: layer4.1.bn2.bias", lambda s: s.pop("layer4.1.bn2.bias")),
                 "shape": ("fc.bias (11) instead of (10)",
                           lambda s: s.update({"fc.bias": torch.zeros(11)})),
                 "left over": ("1 unexpected: other", lambda s: s.update({"other": torch.zeros(1)}))}
        for title, (message, change) in cases.items():
            with self.subTest(title):
                changed = dict(state)
                change(changed)
                with self.assertRaises(AssertionError) as raised:
                    session.lockstep((changed, self.batch(2, [3, 32, 32]),
                                      {"model": "resnet18", "classes": 10, "image": [3, 32, 32]}))
                self.assertIn(message, str(raised.exception))

    def same_logits(self, got, single, truth):
        bound = judge.FACTORS[0] * judge.relative(single, truth)[0] + judge.FLOOR
        self.assertLessEqual(judge.relative(got, truth)[0], bound)


class Schedules(unittest.TestCase):
    # Both evaluate the same formula in f64; PyTorch's recursions round once per step.
    TOLERANCE = 1e-12

    def check(self, make, at, **request):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=request["rate"])
        scheduler = make(optimizer)
        want = []
        for _ in at:
            want.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        got = session.ask({"task": "schedule", "at": at, **request})[0]
        np.testing.assert_allclose(got, want, rtol=self.TOLERANCE, atol=self.TOLERANCE * request["rate"])

    def test_cosine(self):
        self.check(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 40, 1e-3), list(range(40)),
                   kind="cosine", rate=0.4, epochs=40, minimum=1e-3)

    def test_step(self):
        self.check(lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [5, 12, 13], 0.2), list(range(20)),
                   kind="step", rate=0.4, epochs=20, milestones=[5, 12, 13], gamma=0.2)

    def test_warm_up(self):
        self.check(lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1, 1.0, 8), list(range(20)),
                   kind="warm_up", rate=0.4, epochs=8, start=0.1)

    def test_one_cycle(self):
        # PyTorch's cycle has its peak at step 0.3 T - 1 and its end at step T - 1, Lockstep's at 0.3 and 1 of the run.
        total, rising = 50, 0.3
        peak = rising * total - 1
        at = [rising * total * t / peak if t < peak else t + 1 for t in range(total - 1)]
        self.check(lambda o: torch.optim.lr_scheduler.OneCycleLR(
            o, 0.4, total_steps=total, pct_start=rising, div_factor=20, final_div_factor=1e3, cycle_momentum=False), at,
            kind="one_cycle", rate=0.4, epochs=total, rising=rising, start_divisor=20, final_divisor=1e3)

    def test_cosine_restarts(self):
        for growth in (1, 2, 3):
            self.check(lambda o, g=growth: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 5, g, 1e-3),
                       list(range(60)), kind="cosine_restarts", rate=0.4, epochs=5, growth=growth, minimum=1e-3)

    def test_polynomial(self):
        for power in (1.0, 0.5, 2.0):
            self.check(lambda o, p=power: torch.optim.lr_scheduler.PolynomialLR(o, 30, p), list(range(40)),
                       kind="polynomial", rate=0.4, epochs=30, power=power)

    def test_exponential(self):
        self.check(lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9), list(range(40)),
                   kind="exponential", rate=0.4, epochs=40, gamma=0.9)

    def test_inverse_square_root(self):
        self.check(lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda t: (8 / max(t, 8))**0.5), list(range(60)),
                   kind="inverse_square_root", rate=0.4, epochs=8)

    def test_plateau(self):
        generator = torch.Generator().manual_seed(5)
        losses = (3 * 0.97**torch.arange(120.0) + 0.3 * torch.rand(120, generator=generator)).tolist()
        losses[30:50] = [losses[29]] * 10 + [float("inf")] * 10
        for patience, cooldown, threshold, minimum in ((2, 0, 1e-4, 0.0), (0, 3, 1e-2, 1e-3), (5, 1, 0.1, 0.02)):
            optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer, factor=0.5, patience=patience, threshold=threshold, cooldown=cooldown, min_lr=minimum, eps=0)
            want = []
            for loss in losses:
                scheduler.step(loss)
                want.append(optimizer.param_groups[0]["lr"])
            self.assertGreater(len(set(want)), 3)
            got = session.ask({"task": "plateau", "rate": 0.4, "factor": 0.5, "patience": patience,
                               "threshold": threshold, "cooldown": cooldown, "minimum": minimum,
                               "losses": [min(x, 1e300) for x in losses]})[0]
            np.testing.assert_allclose(got, want, rtol=self.TOLERANCE)
