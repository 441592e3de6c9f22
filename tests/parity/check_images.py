#!/usr/bin/env python3
"""Compares Lockstep's decoding, scaling and changes of images with Pillow's and torchvision's: check_images.py IMAGE_RUNNER.

What is said to have Pillow's bits is compared bit for bit. Status 77 skips: no Pillow, NumPy or torchvision.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image, ImageEnhance, ImageOps
    from torchvision import transforms as T
    from torchvision.transforms import functional as F
    from torchvision.transforms import InterpolationMode
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

runner = sys.argv[1]
failures = []
compared = 0


def run(path, *words):
    done = subprocess.run([runner, path, *map(str, words)], stdout=subprocess.PIPE, check=True)
    header, pixels = done.stdout.split(b"\n", 1)
    channels, height, width = map(int, header.split())
    return np.frombuffer(pixels, np.uint8).reshape(channels, height, width).transpose(1, 2, 0)


def expect_equal(name, ours, theirs, different=0.0, distance=0):
    """Equal, but for a share `different` of the values, or values that differ by at most `distance`."""
    global compared
    compared += 1
    theirs = np.asarray(theirs)
    if ours.shape != theirs.shape:
        failures.append(f"{name}: shape {ours.shape}, expected {theirs.shape}")
        return
    gap = np.abs(ours.astype(int) - theirs.astype(int))
    share = float((gap > distance).mean())
    if share > different:
        failures.append(f"{name}: {share:.2%} of the values differ by more than {distance}, at most by {gap.max()}")


def picture(height, width, seed):
    """Waves, edges and noise."""
    random = np.random.RandomState(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([128 + 100 * np.sin(x / (7 + c) + y / (11 - c)) for c in range(3)], -1)
    waves[height // 3:height // 2, width // 4:width // 2] = (250, 10, 60)
    return Image.fromarray(np.clip(waves + random.normal(0, 12, waves.shape), 0, 255).astype(np.uint8))


def save_files(folder):
    image = picture(203, 310, 1)
    files = {}

    def save(name, what, **options):
        files[name] = str(folder / name)
        what.save(files[name], **options)

    for subsampling in (0, 1, 2):
        save(f"s{subsampling}.jpg", image, quality=90, subsampling=subsampling)
    save("progressive.jpg", image, quality=85, progressive=True)
    save("grey.jpg", image.convert("L"))
    save("cmyk.jpg", image.convert("CMYK"))
    save("rgb.png", image)
    save("grey.png", image.convert("L"))
    save("alpha.png", image.convert("RGBA"))
    save("grey_alpha.png", image.convert("LA"))
    save("palette.png", image.convert("P", palette=Image.ADAPTIVE, colors=200))
    save("one.png", image.convert("1"))
    save("transparent.png", image.convert("P", palette=Image.ADAPTIVE, colors=16), transparency=3)
    return files


def check_files(files):
    for name, path in files.items():
        theirs = Image.open(path).convert("RGB")
        expect_equal(f"decode {name}", run(path, "decode"), theirs)
        for height, width in ((64, 64), (100, 310), (300, 500)):
            expect_equal(f"whole {name} {height}x{width}", run(path, "crop", "whole", height, width, 0),
                         theirs.resize((width, height), Image.BILINEAR))
    path = files["s2.jpg"]
    image = Image.open(path).convert("RGB")
    for shorter, height, width in ((128, 112, 112), (203, 203, 150), (256, 224, 224)):
        theirs = T.CenterCrop((height, width))(T.Resize(shorter)(image))
        expect_equal(f"centre {shorter} {height}x{width}", run(path, "crop", "centre", height, width, shorter), theirs)
    for top, left, rows, columns in ((0, 0, 203, 310), (17, 40, 90, 101), (150, 200, 53, 110), (9, 9, 3, 2)):
        theirs = F.resized_crop(image, top, left, rows, columns, [64, 80])
        expect_equal(f"part {top},{left} {rows}x{columns}", run(path, "part", top, left, rows, columns, 64, 80), theirs)


def check_changes(path):
    image = Image.open(path).convert("RGB")
    enhancers = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast,
                 "saturation": ImageEnhance.Color, "sharpness": ImageEnhance.Sharpness}
    for name, enhancer in enhancers.items():
        for factor in (0.0, 0.25, 0.8, 1.0, 1.3, 2.5):
            expect_equal(f"{name} {factor}", run(path, "change", name, factor), enhancer(image).enhance(factor))
    for bits in (1, 4, 7, 8):
        expect_equal(f"posterize {bits}", run(path, "change", "posterize", bits), ImageOps.posterize(image, bits))
    for threshold in (0, 90, 255, 256):
        expect_equal(f"solarize {threshold}", run(path, "change", "solarize", threshold), ImageOps.solarize(image, threshold))
    expect_equal("autocontrast", run(path, "change", "autocontrast", 0), ImageOps.autocontrast(image))
    expect_equal("equalize", run(path, "change", "equalize", 0), ImageOps.equalize(image))
    import torch
    tensor = torch.from_numpy(np.asarray(image).transpose(2, 0, 1).copy())
    for shift in (-0.5, -0.1, 0.03, 0.4):
        theirs = F.adjust_hue(tensor, shift).numpy().transpose(1, 2, 0)  # which cuts numbers off
        expect_equal(f"hue {shift}", run(path, "change", "hue", shift), theirs, distance=1)


def check_augments(path):
    """The directions and magnitudes of torchvision's RandAugment."""
    image = Image.open(path).convert("RGB")
    policy = T.RandAugment()._augmentation_space(31, (image.height, image.width))
    names = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
             "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]
    if list(policy) != names:
        failures.append(f"torchvision's operations are {list(policy)}")
        return
    from torchvision.transforms.autoaugment import _apply_op
    for number, name in enumerate(names):
        magnitudes, signed = policy[name]
        for place in (3, 9, 30):
            magnitude = float(magnitudes[place]) if magnitudes.ndim > 0 else 0.0
            candidates = [_apply_op(image, name, sign * magnitude, InterpolationMode.NEAREST, None)
                          for sign in ((1, -1) if signed else (1,))]
            # Which direction a negative magnitude means is not the same everywhere; both must be there.
            for negative in (0, 1):
                ours = run(path, "augment", number, place / 30, negative)
                gaps = [float((ours != np.asarray(c)).mean()) for c in candidates]
                best = int(np.argmin(gaps))
                geometric = name.startswith(("Shear", "Rotate"))  # points between two pixels
                expect_equal(f"{name} {place} {negative}", ours, candidates[best], different=0.02 if geometric else 0.0)


with tempfile.TemporaryDirectory() as scratch:
    saved = save_files(pathlib.Path(scratch))
    check_files(saved)
    check_changes(saved["rgb.png"])
    check_augments(saved["rgb.png"])
for failure in failures:
    print(failure)
print(f"{compared} comparisons, {len(failures)} failed")
sys.exit(1 if failures or compared < 100 else 0)
