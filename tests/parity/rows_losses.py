"""Losses: their values and the gradient of the prediction, by PyTorch's function of the same name where there is one."""
import torch
from torch.nn import functional as F
from torchvision.ops import sigmoid_focal_loss

from rows_operators import OperatorRow


def weighted_mean(each, batch, dtype):
    """The mean of elements (samples, ...) by the weights of samples, times the mask."""
    weight = batch["weight"].to(dtype).reshape(-1, *[1] * (each.ndim - 1)) * batch["mask"].to(dtype)
    weight = weight.expand_as(each)
    return (each * weight).sum() / weight.sum()


class LossFunctions(OperatorRow):
    SHAPE = (5, 3, 4)

    def loss(self, title, x, function, batch, op, **request):
        """`function` maps x and the batch, in one type, to the loss."""
        def run(o):
            floats = {n: t.to(o["x"].dtype) if t.is_floating_point() else t for n, t in batch.items()}
            return function(o["x"], floats)
        self.add(title, {"x": x}, run, batch, op=op, **request)

    def elementwise(self, op, function, target, **request):
        """`function` returns the loss of each element."""
        x = self.random(*self.SHAPE)
        self.loss(op, x, lambda x, b: function(x, b["target"]).mean(), {"target": target}, op, **request)
        weights = {"weight": self.random(5).abs(), "mask": (self.random(5, 1, 4) > -0.5).float()}
        self.loss(f"{op}, weighted", x, lambda x, b: weighted_mean(function(x, b["target"]), b, x.dtype),
                  {"target": target, **weights}, op, weighted=True, **request)

    def test_of_numbers(self):
        target = self.random(*self.SHAPE)
        self.elementwise("l1_loss", lambda x, t: F.l1_loss(x, t, reduction="none"), target)
        self.elementwise("mean_squared_error", lambda x, t: F.mse_loss(x, t, reduction="none"), target)
        for delta in (1.0, 0.3):
            self.elementwise("huber_loss", lambda x, t, d=delta: F.huber_loss(x, t, reduction="none", delta=d), target,
                             delta=delta)
        for beta in (1.0, 0.3, 0.0):
            self.elementwise("smooth_l1_loss", lambda x, t, b=beta: F.smooth_l1_loss(x, t, reduction="none", beta=b),
                             target, beta=beta)
        self.compare_all("losses of numbers")

    def test_relative_l2(self):
        def relative(x, b):
            return ((x - b["target"]).flatten(1).norm(dim=1) / (b["target"].flatten(1).norm(dim=1) + 1e-8)).mean()
        self.loss("relative l2", self.random(*self.SHAPE), relative, {"target": self.random(*self.SHAPE)},
                  "relative_l2_loss")
        self.compare_all("relative l2")

    def test_gaussian_nll(self):
        for full in (False, True):
            batch = {"target": self.random(*self.SHAPE), "variance": self.random(*self.SHAPE).abs() + 0.1}
            self.loss(f"full {full}", self.random(*self.SHAPE), lambda x, b, f=full: F.gaussian_nll_loss(
                x, b["target"], b["variance"], full=f), batch, "gaussian_nll_loss", full=full)
        self.compare_all("gaussian nll")

    def test_of_probabilities(self):
        hard = (self.random(*self.SHAPE) > 0).float()
        for target in (hard, torch.sigmoid(self.random(*self.SHAPE))):
            for positive in (1.0, 2.5):
                self.elementwise("binary_cross_entropy_with_logits",
                                 lambda x, t, p=positive: F.binary_cross_entropy_with_logits(
                                     x, t, reduction="none", pos_weight=torch.tensor(p, dtype=x.dtype)), target,
                                 pos_weight=positive)
            for alpha, gamma in ((0.25, 2.0), (-1.0, 2.0), (0.6, 1.5), (0.5, 0.0)):
                self.elementwise("sigmoid_focal_loss", lambda x, t, a=alpha, g=gamma: sigmoid_focal_loss(x, t, a, g),
                                 target, alpha=alpha, gamma=gamma)
        self.compare_all("losses of probabilities")

    def test_kl_div(self):
        for log_target in (False, True):
            target = torch.softmax(self.random(6, 7), 1)
            batch = {"target": target.log() if log_target else target}
            self.loss(f"log target {log_target}", torch.log_softmax(self.random(6, 7), 1),
                      lambda x, b, l=log_target: F.kl_div(x, b["target"], reduction="batchmean", log_target=l), batch,
                      "kl_div", log_target=log_target)
        self.compare_all("kl_div")

    def test_dice(self):
        def dice(x, b):
            both, sizes = (x * b["target"]).sum(2), (x + b["target"]).sum(2)
            return (1 - (2 * both + 1e-5) / (sizes + 1e-5)).mean()
        self.loss("dice", torch.sigmoid(self.random(*self.SHAPE)), dice,
                  {"target": (self.random(*self.SHAPE) > 0).float()}, "dice_loss")
        self.compare_all("dice")

    def test_cosine_embedding(self):
        for margin in (0.0, -0.4):
            batch = {"other": self.random(6, 7), "target": torch.tensor([1.0, -1, 1, -1, -1, 1])}
            self.loss(f"margin {margin}", self.random(6, 7), lambda x, b, m=margin: F.cosine_embedding_loss(
                x, b["other"], b["target"], m), batch, "cosine_embedding_loss", margin=margin)
        self.compare_all("cosine embedding")

    def test_cross_entropy_of_pixels(self):
        label = torch.tensor([[[0, 3, 255], [2, 1, 1]], [[255, 2, 0], [3, 3, 1]]], dtype=torch.int32)
        for weights in (None, [1.0, 0.25, 3.0, 2.0]):
            for smoothing in (0.0, 0.1):
                request = {"label_smoothing": smoothing, "ignore_index": 255}
                request |= {"class_weights": weights} if weights else {}
                self.loss(f"smoothing {smoothing}, weights {weights}", 5 * self.random(2, 4, 2, 3),
                          lambda x, b, w=weights, s=smoothing: F.cross_entropy(
                              x, b["label"].long(), weight=w and torch.tensor(w, dtype=x.dtype), ignore_index=255,
                              label_smoothing=s), {"label": label}, "cross_entropy", **request)
        self.loss("the usual ignored index", self.random(3, 4), lambda x, b: F.cross_entropy(x, b["label"].long()),
                  {"label": torch.tensor([1, -100, 3], dtype=torch.int32)}, "cross_entropy")
        self.compare_all("cross entropy of pixels")

    def test_cross_entropy_of_probabilities(self):
        for shape in ((5, 4), (2, 4, 3, 2)):
            target = torch.softmax(self.random(*shape), 1)
            for weights in (None, [1.0, 0.25, 3.0, 2.0]):
                for smoothing in (0.0, 0.1):
                    request = {"label_smoothing": smoothing, "soft": True}
                    request |= {"class_weights": weights} if weights else {}
                    self.loss(f"{shape}, smoothing {smoothing}, weights {weights}", 5 * self.random(*shape),
                              lambda x, b, w=weights, s=smoothing: F.cross_entropy(
                                  x, b["target"], weight=w and torch.tensor(w, dtype=x.dtype), label_smoothing=s),
                              {"target": target}, "cross_entropy", **request)
        self.compare_all("cross entropy of probabilities")

    def test_cross_entropy_with_weights_of_pixels(self):
        label = torch.tensor([[0, 3, 2], [1, 2, 0]], dtype=torch.int32)
        batch = {"label": label, "weight": torch.tensor([0.5, 2.0]), "mask": torch.tensor([[1.0, 0, 1], [1, 1, 0]])}
        self.loss("weights", self.random(2, 4, 3), lambda x, b: weighted_mean(
            F.cross_entropy(x, b["label"].long(), reduction="none"), b, x.dtype), batch, "cross_entropy", weighted=True)
        self.compare_all("cross entropy with weights of pixels")
