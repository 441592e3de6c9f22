#!/usr/bin/env python3
"""Models that PyTorch has exported as ONNX, computed by Lockstep: check_onnx_import.py FOLDER_OF_LOCKSTEP_C LOCKSTEP [CASE...].

Each is exported for two samples with the batch's size left open, or fixed, and computes PyTorch's outputs for three samples to 1e-4 of
the largest one, in Lockstep and as C source. Status 77 skips: no torch, torchvision or NumPy, or no shared library.
"""
import pathlib
import sys
import tempfile
import warnings

sys.path.insert(0, sys.argv[1])
try:
    import c_source
    import lockstep_c
    import numpy as np
    import torch
    import torchvision
    from torch import nn
except (ImportError, OSError) as error:
    print(f"SKIP: {error}")
    sys.exit(77)


class Viewed(nn.Module):
    """Sizes that are computed from the input's."""
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 16, 5)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv(x).relu(), 2)
        return self.fc(x.view(x.size(0), -1))


class Sequence(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(12, 2)

    def forward(self, x):
        return self.out(self.cell(x)[0])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu", norm_first=True)

    def forward(self, x):
        return self.layer(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")
        self.up, self.head = nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1), nn.Conv2d(10, 1, 1)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x):
        low = nn.functional.silu(self.norm(self.middle(self.down(x))))
        bilinear = nn.functional.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(torch.cat([x, self.up(low), bilinear], 1))


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.slopes = nn.LayerNorm(6), nn.PReLU(4)

    def forward(self, x):
        y = self.norm(x).exp() + nn.functional.softplus(x) * x.abs().sqrt()
        y = torch.where(x > 0.5, y, self.slopes(x) - nn.functional.mish(x))
        y = y + x.mean(-1, keepdim=True) - x.amax(1, keepdim=True) + nn.functional.elu(x, 0.5).clamp(-0.2, 0.7)
        return torch.cat([y[:, 1:3], y.flip(1), nn.functional.log_softmax(y, -1), y.pow(2).sum(-1, keepdim=True).expand(-1, -1, 6)], 1)


class Frames(nn.Module):
    """Several images of one sample, which take the place of samples in the middle."""

    def __init__(self):
        super().__init__()
        self.images = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.ConvTranspose2d(4, 3, 2), nn.Flatten(),
                                    nn.BatchNorm1d(48), nn.Linear(48, 5))

    def forward(self, x):
        return self.images(x.reshape(-1, 2, 8, 8)).reshape(-1, 3, 5)


def check_training(path):
    """Batch norms that PyTorch kept are trained: five steps of the file's model beside PyTorch's."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Flatten(),
                           nn.Linear(16, 3))
    module.double().eval()
    torch.onnx.export(module, torch.randn(1, 2, 6, 6).double(), str(path), opset_version=13, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    module.train()
    model = lockstep_c.Model({"onnx": str(path), "input": [2, 6, 6], "output": [3], "type": "f64"})
    trainer = lockstep_c.Trainer(model, batch=8, optimizer='{"name": "sgd", "momentum": 0.0}')
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(5):
        x, y = torch.randn(8, 2, 6, 6).double(), torch.randn(8, 3).double()
        loss = nn.functional.mse_loss(module(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        theirs = trainer.step(x.numpy(), y.numpy(), 0.1).loss
        assert abs(loss.item() - theirs) < 1e-9 * loss.item(), (loss.item(), theirs)
    module.eval()
    worst = np.abs(trainer.predict(x.numpy()) - module(x).detach().numpy()).max()
    assert worst < 1e-6, worst  # the file has the momentum of running statistics in f32
    print(f"training: five steps, then outputs within {worst:.1e}", flush=True)


def check_wide(path):
    """A file in f64 says so to those who load it."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double().eval()
    torch.onnx.export(module, torch.randn(1, 3).double(), str(path), opset_version=13, input_names=["x"])
    model = lockstep_c.Model.load(path)
    assert model.description["type"] == "f64", model.description
    x = torch.randn(5, 3).double()
    worst = np.abs(model.predict(x.numpy()) - module(x).detach().numpy()).max()
    assert worst < 1e-12, worst
    print(f"f64: outputs within {worst:.1e}", flush=True)


vision = torchvision.models
ATTENTION = 13 if torch.__version__.startswith("1.") else 14  # the first version for which PyTorch exports it
CASES = {  # name: (module, shape of a sample, version of the operators, whether the batch's size is open)
    "viewed": (Viewed, (3, 8, 8), 13, True),
    "mlp": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Linear(8, 3)), (3, 4), 9, False),
    "lstm": (lambda: Sequence(nn.LSTM(3, 6, 2, batch_first=True, bidirectional=True)), (7, 3), 13, False),
    "gru": (lambda: Sequence(nn.GRU(3, 12, batch_first=True)), (7, 3), 14, False),
    "attention": (Attention, (5, 16), ATTENTION, False),
    "attention_open": (Attention, (5, 16), 14, True),
    "unet": (UNet, (2, 16, 16), 16, True),
    "frames": (Frames, (3, 2, 8, 8), 13, True),
    "functions": (Functions, (4, 6), 13, True),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3, dilation=2), nn.ReLU(), nn.AvgPool1d(2), nn.InstanceNorm1d(4, affine=True)), (2, 12), 13, False),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(1, 2, 3, padding=1), nn.BatchNorm3d(2), nn.Tanh(), nn.MaxPool3d(2)), (1, 4, 4, 4), 13, False),
    "resnet18": (vision.resnet18, (3, 64, 64), 13, True),
    "mobilenet_v3_small": (vision.mobilenet_v3_small, (3, 64, 64), 14, False),
    "efficientnet_b0": (vision.efficientnet_b0, (3, 64, 64), 13, True),
    "squeezenet1_1": (vision.squeezenet1_1, (3, 64, 64), 13, False),
    "shufflenet_v2_x0_5": (vision.shufflenet_v2_x0_5, (3, 64, 64), 13, True),
    "densenet121": (vision.densenet121, (3, 64, 64), 13, False),
    "regnet_y_400mf": (vision.regnet_y_400mf, (3, 64, 64), 13, False),
    "convnext_tiny": (vision.convnext_tiny, (3, 64, 64), 13, True),
    "googlenet": (lambda: vision.googlenet(init_weights=False), (3, 64, 64), 13, False),
    "vit_b_16": (lambda: vision.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=9), (3, 32, 32), 14, False),
    "vit_b_16_open": (lambda: vision.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=9), (3, 32, 32), 14, True),
}


def randomise(module):
    """Statistics and scales with which a norm that is left out or folded wrongly shows."""
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            for tensor, low, high in ((layer.running_mean, -0.2, 0.2), (layer.running_var, 0.7, 1.4), (layer.weight.data, 0.8, 1.2)):
                nn.init.uniform_(tensor, low, high)
    for parameter in module.parameters():
        if not parameter.any():
            nn.init.normal_(parameter)


def distance(name, path):
    make, shape, version, is_open = CASES[name]
    torch.manual_seed(1)
    module = make()
    randomise(module)
    module.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, torch.randn(2, *shape), str(path), opset_version=version, input_names=["input"], output_names=["output"],
                          dynamic_axes={"input": {0: "n"}, "output": {0: "n"}} if is_open else None)
        x = torch.randn(3, *shape)
        with torch.no_grad():
            expected = module(x).numpy()
    model = lockstep_c.Model({"onnx": str(path), "input": list(shape), "output": list(expected.shape[1:])})
    computed = model.predict(x.numpy())
    assert computed.shape == expected.shape, (name, computed.shape, expected.shape)
    in_c = c_source.distance(sys.argv[2], path, [x.numpy()], expected, path.parent, name)
    return np.max([np.abs(computed - expected).max() / np.abs(expected).max(), in_c])  # which is NaN if one of them is


def main():
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        check_training(pathlib.Path(folder) / "model.onnx")
        check_wide(pathlib.Path(folder) / "wide.onnx")
        for name in sys.argv[3:] or CASES:
            try:
                worst = distance(name, pathlib.Path(folder) / "model.onnx")
                print(f"{name}: outputs within {worst:.1e}", flush=True)
                if not worst < 1e-4:
                    failed.append(name)
            except (lockstep_c.Error, AssertionError, SystemExit) as error:
                print(f"{name}: {error}", flush=True)
                failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


main()
