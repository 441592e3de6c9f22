"""Whole models: outputs, loss, gradients, running statistics and weights after some steps."""
import unittest

import torch

import session
import torch_models


class ModelRow(unittest.TestCase):
    """What rows of models share: a model of the zoo and its torch counterpart with the same weights."""

    def case(self, title, model_name, image, samples, **request):
        classes, steps = request.pop("classes", 10), request.get("steps", 1)
        torch.manual_seed(1)
        generator = torch.Generator().manual_seed(2)
        model = torch_models.settle(torch_models.build(model_name, classes, image), image, generator)
        weights = {name: t.clone() for name, t in model.state_dict().items()}
        batch = {"image": torch.randn((samples * steps, *image), generator=generator),
                 "label": torch.randint(classes, (samples * steps,), generator=generator, dtype=torch.int32)}
        request |= {"model": model_name, "classes": classes, "image": image}
        return session.Case(title, lambda *how: session.torch_model(model, batch, request, *how), weights, batch,
                            request, is_deep=True)

    def step(self, model_name, *arguments, **request):
        session.compare(self, model_name, [self.case("a step", model_name, *arguments, **request)])


class Resnet18(ModelRow):
    def test_everything_of_a_step(self):
        self.step("resnet18", [3, 72, 56], 6, classes=1000)


class Resnet50(ModelRow):
    def test_everything_of_a_step(self):
        self.step("resnet50", [3, 72, 56], 6, classes=1000)


class ResNeXt50(ModelRow):
    def test_everything_of_a_step(self):
        self.step("resnext50_32x4d", [3, 72, 56], 6)


class DenseNet121(ModelRow):
    def test_everything_of_a_step(self):
        self.step("densenet121", [3, 72, 56], 6)


class MobileNetV2(ModelRow):
    def test_everything_of_a_step(self):
        self.step("mobilenet_v2", [3, 72, 56], 6)


class ViTTiny(ModelRow):
    def test_everything_of_a_step(self):
        self.step("vit_ti_16", [3, 48, 48], 4)


class Resnet18Cifar(ModelRow):
    def test_everything_of_a_step(self):
        self.step("resnet18_cifar", [3, 32, 32], 4)


OPTIMIZERS = {
    "sgd": {"optimizer": "sgd", "lr": 1e-3},
    "momentum": {"optimizer": "sgd", "lr": 1e-3, "momentum": 0.9, "weight_decay": 5e-4},
    "nesterov": {"optimizer": "sgd", "lr": 1e-3, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
    "adam": {"optimizer": "adam", "lr": 1e-4},
    "adam with decay": {"optimizer": "adam", "lr": 1e-4, "weight_decay": 1e-2},
    "adamw": {"optimizer": "adamw", "lr": 1e-4, "weight_decay": 1e-2},
    "rmsprop": {"optimizer": "rmsprop", "lr": 1e-5, "weight_decay": 1e-2},
    "rmsprop with momentum": {"optimizer": "rmsprop", "lr": 1e-5, "alpha": 0.9, "momentum": 0.9},
    "rmsprop, centered": {"optimizer": "rmsprop", "lr": 1e-5, "centered": True, "momentum": 0.5},
}
MORE_OPTIMIZERS = {
    "adagrad": {"optimizer": "adagrad", "lr": 1e-4, "weight_decay": 1e-2},
    "adamax": {"optimizer": "adamax", "lr": 1e-4, "weight_decay": 1e-2},
    "nadam": {"optimizer": "nadam", "lr": 1e-4, "weight_decay": 1e-2},
    "radam": {"optimizer": "radam", "lr": 1e-3, "weight_decay": 1e-2},
    "lars": {"optimizer": "lars", "lr": 0.1, "weight_decay": 1e-2},
    "lamb": {"optimizer": "lamb", "lr": 1e-4, "weight_decay": 1e-2},
}


class Steps(ModelRow):
    def ten(self, model, image, samples, optimizers=None):
        session.compare(self, model, [self.case(title, model, image, samples, steps=10, **options)
                                      for title, options in (optimizers or OPTIMIZERS).items()])


class ToySteps(Steps):
    def test_ten_small_steps(self):
        self.ten("toy", [3, 32, 32], 16)

    def test_ten_small_steps_of_more_optimizers(self):
        self.ten("toy", [3, 32, 32], 16, MORE_OPTIMIZERS)


class Resnet20Steps(Steps):
    # A rule does not know the network: one of each kind is enough here.
    def test_ten_small_steps(self):
        self.ten("resnet20", [3, 20, 12], 8, {title: OPTIMIZERS[title] for title in ("momentum", "adam with decay", "rmsprop, centered")})


class Losses(ModelRow):
    WEIGHTS = [0.5, 2.0, 1.0, 0.0, 3.0, 1.5, 0.25, 1.0, 1.0, 4.0]

    def test_smoothed_and_weighted(self):
        cases = {
            "label smoothing": {"label_smoothing": 0.1},
            "class weights": {"class_weights": self.WEIGHTS},
            "both": {"label_smoothing": 0.2, "class_weights": self.WEIGHTS},
            "both, trained": {"label_smoothing": 0.2, "class_weights": self.WEIGHTS, "steps": 3, "lr": 1e-3},
        }
        session.compare(self, "losses of toy", [self.case(title, "toy", [3, 32, 32], 16, **request)
                                                for title, request in cases.items()])
