#!/usr/bin/env python3
"""Writes the weights of a GPT-2, as Hugging Face or PyTorch have them, as a file for `train_gpt --weights`.

  scripts/gpt2_weights.py gpt2/pytorch_model.bin gpt2.h5      # or model.safetensors, or the folder of one of them
"""
import argparse
import pathlib

# Layers that are a Conv1D there: their weights are (inputs, outputs).
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
MASKS = (".attn.bias", ".attn.masked_bias")


def convert(state):
    """Lockstep's tensors by name, of those of GPT2LMHeadModel, or of GPT2Model, whose names have no "transformer."."""
    weights = {}
    for name, tensor in state.items():
        if name.endswith(MASKS):  # which keys a query sees; no parameter
            continue
        name = name if name.startswith(("transformer.", "lm_head.")) else "transformer." + name
        weights[name] = (tensor.t() if name.endswith(TRANSPOSED) else tensor).float().contiguous()
    weights.setdefault("lm_head.weight", weights["transformer.wte.weight"])
    return weights


def read(path):
    """The tensors of a file, or of the file of weights in a folder."""
    if path.is_dir():
        found = [path / name for name in ("model.safetensors", "pytorch_model.bin") if (path / name).exists()]
        if not found:
            raise SystemExit(f"{path}: no model.safetensors and no pytorch_model.bin, expected one of them")
        path = found[0]
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file
        return load_file(path)
    import torch
    return torch.load(path, map_location="cpu")


def main():
    import h5py

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    weights = convert(read(arguments.weights))
    with h5py.File(arguments.output, "w") as file:
        for name, tensor in weights.items():
            file[name] = tensor.numpy()
    context, width = weights["transformer.wpe.weight"].shape
    layers = sum(name.endswith(".ln_1.weight") for name in weights)
    print(f"train_gpt --weights {arguments.output} --layers {layers} --width {width} --heads {max(width // 64, 1)} --context {context}")


if __name__ == "__main__":
    main()
