"""The field models of models/zoo in PyTorch, with the zoo's names: what bench/torch_step.py times beside bench_step and
tests/parity compares."""
import torch
from torch import nn
from torch.nn import functional as F

import torch_sequences


def conv(axes):
    return (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]


def conv_transpose(axes):
    return (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[axes - 1]


def batch_norm(axes):
    return (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[axes - 1]


def max_pool(axes):
    return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]


class DoubleConv(nn.Module):
    def __init__(self, axes, inside, out):
        super().__init__()
        self.conv1 = conv(axes)(inside, out, 3, padding=1, bias=False)
        self.bn1 = batch_norm(axes)(out)
        self.conv2 = conv(axes)(out, out, 3, padding=1, bias=False)
        self.bn2 = batch_norm(axes)(out)

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class UNet(nn.Module):
    def __init__(self, inputs, outputs, width, depth):
        super().__init__()
        axes = len(inputs) - 1
        self.pool, self.levels, channels = max_pool(axes), depth, width
        self.head = conv(axes)(width, outputs[0], 1)
        self.down0 = DoubleConv(axes, inputs[0], width)
        for level in range(1, depth + 1):
            setattr(self, f"down{level}", DoubleConv(axes, channels, 2 * channels))
            channels *= 2
        for level in reversed(range(depth)):
            setattr(self, f"grow{level}", conv_transpose(axes)(channels, channels // 2, 2, stride=2))
            setattr(self, f"up{level}", DoubleConv(axes, channels, channels // 2))
            channels //= 2

    def forward(self, x):
        kept = []
        for level in range(self.levels + 1):
            if level > 0:
                kept.append(x)
                x = self.pool(x, 2)
            x = getattr(self, f"down{level}")(x)
        for level in reversed(range(self.levels)):
            grown = getattr(self, f"grow{level}")(x)
            x = getattr(self, f"up{level}")(torch.cat((kept.pop(), grown), 1))
        return self.head(x)


class CosmoFlow(nn.Module):
    def __init__(self, inputs, outputs, width, depth):
        super().__init__()
        axes = len(inputs) - 1
        self.pool, self.levels, channels, features = max_pool(axes), depth, inputs[0], width << (depth - 1)
        for level in range(depth):
            setattr(self, f"conv{level}", conv(axes)(channels, width << level, 2, padding=1))
            channels = width << level
        for size in inputs[1:]:
            features *= -(-size >> depth)  # halved that often, rounded up
        self.dense1, self.dense2, self.output = nn.Linear(features, 128), nn.Linear(128, 64), nn.Linear(64, outputs[0])

    def forward(self, x):
        for level in range(self.levels):
            x = self.pool(F.leaky_relu(getattr(self, f"conv{level}")(x), 0.3), 2)
        x = F.leaky_relu(self.dense1(torch.flatten(x, 1)), 0.3)
        return self.output(F.leaky_relu(self.dense2(x), 0.3))


class Forecaster(nn.Module):
    def __init__(self, inputs, outputs, width, depth):
        super().__init__()
        self.lstm = nn.LSTM(inputs[1], width, depth, batch_first=True)
        self.head = nn.Linear(width, outputs[0])

    def forward(self, x):
        return self.head(self.lstm(x)[1][0][-1])


class SpectralConv(nn.Module):
    """Weights are real numbers with the parts of a complex one in the last dimension."""

    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.rand(channels, channels, 2 * modes[0], modes[1], 2) / channels**2)

    def forward(self, x):
        (m1, m2), spectrum = self.modes, torch.fft.rfft2(x)
        weight = torch.view_as_complex(self.weight)
        result = torch.zeros_like(spectrum)
        for rows, of in ((slice(0, m1), weight[:, :, :m1]), (slice(-m1, None), weight[:, :, m1:])):
            result[:, :, rows, :m2] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, rows, :m2], of)
        return torch.fft.irfft2(result, s=x.shape[-2:])


class Fno(nn.Module):
    """In two dimensions."""

    def __init__(self, inputs, outputs, width, depth, modes):
        super().__init__()
        self.depth = depth
        axes = [torch.linspace(0, 1, size, dtype=torch.float64).float() for size in inputs[1:]]
        self.register_buffer("coordinates", torch.stack(torch.meshgrid(*axes, indexing="ij"))[None])
        self.lift, self.project1 = nn.Conv2d(inputs[0] + 2, width, 1), nn.Conv2d(width, 128, 1)
        self.project2 = nn.Conv2d(128, outputs[0], 1)
        kept = [min(modes, size // 2) for size in inputs[1:]]
        for i in range(depth):
            setattr(self, f"spectral{i}", SpectralConv(width, kept))
            setattr(self, f"pointwise{i}", nn.Conv2d(width, width, 1))

    def forward(self, x):
        x = self.lift(torch.cat((x, self.coordinates.expand(len(x), -1, -1, -1)), 1))
        for i in range(self.depth):
            x = getattr(self, f"spectral{i}")(x) + getattr(self, f"pointwise{i}")(x)
            if i + 1 < self.depth:
                x = F.gelu(x, approximate="tanh")
        return self.project2(F.gelu(self.project1(x), approximate="tanh"))


MODELS = {"unet": UNet, "cosmoflow": CosmoFlow, "lstm": Forecaster, "fno": Fno, "encoder": torch_sequences.SeriesEncoder}

# The rows of bench/subject.h: the model, and its configuration.
ROWS = {
    "unet-2d": ("unet", {"inputs": (3, 64, 64), "outputs": (1, 64, 64), "width": 32, "depth": 4}),
    "unet-3d": ("unet", {"inputs": (1, 32, 32, 32), "outputs": (1, 32, 32, 32), "width": 16, "depth": 3}),
    "cosmoflow": ("cosmoflow", {"inputs": (4, 64, 64, 64), "outputs": (4,), "width": 32, "depth": 5}),
    "lstm": ("lstm", {"inputs": (64, 8), "outputs": (8,), "width": 128, "depth": 2}),
    "fno": ("fno", {"inputs": (1, 64, 64), "outputs": (1, 64, 64), "width": 32, "depth": 4, "modes": 12}),
}
