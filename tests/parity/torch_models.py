"""The zoo's models as their authors write them in PyTorch, with the names that torchvision gives."""
import torch
import torchvision
from torch import nn
from torchvision.models.mobilenetv2 import InvertedResidual
from torchvision.models.resnet import BasicBlock, Bottleneck


class LeNet(nn.Module):
    """The network of PyTorch's CIFAR-10 tutorial."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(torch.relu(self.fc2(x)))


class CifarResNet(nn.Module):
    """He et al. (2015), section 4.2, with projection shortcuts and torchvision's basic block."""

    def __init__(self, depth=20, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        channels = 16
        for i, out in enumerate((16, 32, 64)):
            blocks = []
            for j in range((depth - 2) // 6):
                stride = 2 if i > 0 and j == 0 else 1
                downsample = None
                if stride != 1 or channels != out:
                    downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
                blocks.append(BasicBlock(channels, out, stride, downsample))
                channels = out
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def build(name, classes, image=(3, 224, 224)):
    """The torch model of that name in the zoo's table, for images of that shape."""
    if name == "toy":
        return LeNet(classes)
    if name == "mlp":
        return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                             nn.Linear(1024, classes))
    if name == "mnist_mlp":
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, classes))
    if name == "mobilenet_v2":  # without dropout, whose numbers are each library's own
        return torchvision.models.mobilenet_v2(num_classes=classes, dropout=0)
    if name.startswith(("densenet", "resnext", "wide_resnet")):
        return getattr(torchvision.models, name)(num_classes=classes)
    if name.startswith("vit_"):
        width, heads = {"ti": (192, 3), "s": (384, 6), "b": (768, 12)}[name.split("_")[1]]
        return torchvision.models.VisionTransformer(image[1], int(name.split("_")[2]), 12, heads, width, 4 * width,
                                                    num_classes=classes)
    if name.startswith("resnet"):
        depth = name[len("resnet"):].split("_")[0]
        if int(depth) in (20, 32, 44, 56, 110):
            return CifarResNet(int(depth), classes)
        model = getattr(torchvision.models, "resnet" + depth)(num_classes=classes)
        if name.endswith("_cifar"):
            model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            model.maxpool = nn.Identity()
        return model
    raise ValueError(f"no torch model for {name}")


def settle(model, image, generator):
    """Draws scales and shifts around their initial values and lets running statistics follow random batches, so that
    evaluation and every term of batch norm count. What a block adds to its shortcut is made small, as training does:
    rounding then grows less from block to block."""
    model.train()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.add_(0.1 * torch.randn(module.weight.shape, generator=generator))
                module.bias.add_(0.1 * torch.randn(module.bias.shape, generator=generator))
                module.momentum, module.saved = 0.5, module.momentum
            if isinstance(module, (BasicBlock, Bottleneck)):
                (module.bn3 if isinstance(module, Bottleneck) else module.bn2).weight.mul_(0.3)
            if isinstance(module, torchvision.models.VisionTransformer):  # its last layer is 0
                module.heads.head.weight.add_(0.05 * torch.randn(module.heads.head.weight.shape, generator=generator))
            if isinstance(module, InvertedResidual) and module.use_res_connect:
                module.conv[-1].weight.mul_(0.3)
        for _ in range(4):
            model(torch.randn((16, *image), generator=generator))
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = module.saved
    return model
