#!/usr/bin/env python3
"""`lockstep export` and `import`, read by others: check_export.py LOCKSTEP. Status 77 skips: no onnx, torch or NumPy.

Every model of `lockstep models` becomes ONNX, is checked by onnx, and computes Lockstep's logits in another runtime to 1e-5 of the
largest one, as does its C source; weights come back from safetensors and NumPy's archives bit by bit.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

try:
    import c_source
    import numpy as np
    import onnx
    import onnx_runtime
    from safetensors_file import read_safetensors, write_safetensors
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

lockstep = sys.argv[1]
SMALL = {(3, 224, 224): "3,64,64"}  # the same operators, of a network that runs in a moment
NEEDS_ITS_SIZE = ("vgg", "vit", "densenet")  # smaller images do not fit, or leave no pixel


def call(*words, status=0):
    done = subprocess.run([lockstep, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise SystemExit(f"lockstep {' '.join(map(str, words))}: status {done.returncode}, expected {status}\n{done.stderr}")
    return done.stdout + done.stderr


def random_weights(tensors):
    """Weights with which no two tensors of a norm are alike, and with which signals neither grow nor fade on their way."""
    random = np.random.default_rng(1)
    arrays = {}
    for tensor in tensors:
        name, shape = tensor["name"], tensor["shape"]
        if tensor["type"] == "i64":
            arrays[name] = ("I64", np.zeros(shape, np.int64))
            continue
        array = random.standard_normal(shape, np.float32)
        if len(shape) > 1:
            array *= (2 / np.prod(shape[1:])) ** 0.5
        elif name.endswith(("weight", "var")):
            array = 1 + 0.1 * np.tanh(array)
        else:
            array *= 0.1
        arrays[name] = ("F32", array)
    return arrays


def check_model(entry, folder):
    name = entry["name"]
    path = folder / "model.onnx"
    shape = SMALL.get(tuple(entry["shape"])) if not name.startswith(NEEDS_ITS_SIZE) else None
    shape = ["--shape", shape] if shape else []
    tensors = json.loads(call("inspect", name, "--json", *shape))["tensors"]
    write_safetensors(folder / "random.safetensors", random_weights(tensors))
    call("export", folder / "random.safetensors", "--model", name, "--output", path, "--example", folder / "data", "--batch", 2, *shape)
    nodes, distance = onnx_runtime.compare(path, folder / "data")
    model = onnx.load(str(path))
    assert {p.name for p in model.graph.initializer} >= {t["name"] for t in tensors if "num_batches" not in t["name"]}, name
    tensors = [onnx_runtime.load_tensor(folder / "data" / f"{which}_0.pb")[1] for which in ("input", "output")]
    in_c = c_source.distance(lockstep, path, tensors[:1], tensors[1], folder, f"model_{name}")
    assert in_c < 1e-5, f"{name}: logits of the C source differ by {in_c:.2g} of the largest one"
    print(f"{name}: {nodes} nodes, logits within {distance:.1e}, of C source {in_c:.1e}", flush=True)


def check_c_files(folder):
    """Weights that are damaged or of another model are an error of the C source, and so are options that do not fit."""
    call("export", "--c", "--model", "mnist_mlp", "--output", folder / "net.c")
    library, weights = c_source.build(lockstep, folder / "net.onnx", folder, "net")
    image, expected = np.zeros((2, 784), np.float32), (2, 10)
    assert np.isfinite(c_source.run(library, weights, [image], expected, "net")).all()
    whole = weights.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole + b"x", whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], b"x" + whole[1:]):
        weights.write_bytes(damaged)
        try:
            c_source.run(library, weights, [image], expected, "net")
        except AssertionError as error:
            assert str(error) == "load: status 3", error
        else:
            raise SystemExit(f"{len(damaged)} bytes were taken as weights")
    for words in (["--output", "net.xyz"], ["--output", "net.c", "--c"], ["x.h5", "--c", "--output", "net.h5"], ["net.onnx", "--output", "b.onnx"]):
        call("export", *words, status=2)
    for source in ([folder / "net.onnx"], ["--model", "mnist_mlp"]):
        assert "letter in front" in call("export", *source, "--output", folder / "9.c", status=1)
    assert not (folder / "9.onnx").exists()
    model = (folder / "net.onnx").read_bytes()
    assert "expected another name" in call("export", "--model", folder / "net.onnx", "--output", folder / "net.c", status=1)
    assert (folder / "net.onnx").read_bytes() == model
    call("export", "--model", folder / "net.onnx", "--output", folder / "net2.c")


def check_c_names(folder):
    """Inputs with names that C, C++ or the source have for themselves; a name of the file that is a word of ours."""
    names = ["class", "exp", "i0", "i", "t0", "table0", "weights", "output", "memcpy", "lanes", "ok", "NULL", "new.b"]
    nodes, value = [], names[0]
    for k, name in enumerate(names[1:]):
        nodes.append(onnx.helper.make_node("Mul" if k % 2 else "Add", [value, name], [f"v{k}"]))
        value = f"v{k}"
    nodes.append(onnx.helper.make_node("MatMul", [value, "w"], ["y"]))
    random = np.random.default_rng(1)
    weight = random.standard_normal((4, 3)).astype(np.float32)
    typed = lambda name, shape: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    graph = onnx.helper.make_graph(nodes, "names", [typed(name, [1, 4]) for name in names], [typed("y", [1, 3])],
                                   [onnx.numpy_helper.from_array(weight, "w")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    onnx.save(model, str(folder / "names.onnx"))
    inputs = [random.standard_normal((2, 4)).astype(np.float32) for _ in names]
    expected = inputs[0]
    for k, array in enumerate(inputs[1:]):
        expected = expected * array if k % 2 else expected + array
    distance = c_source.distance(lockstep, folder / "names.onnx", inputs, expected @ weight, folder, "MY_NAME")
    assert distance < 1e-5, f"the output of the C source differs by {distance:.2g} of the largest number"
    header = subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc++", str(folder / "MY_NAME.h")],
                            capture_output=True, text=True, check=False)
    assert header.returncode == 0, header.stderr


def check_weights(folder):
    random = np.random.default_rng(1)
    half = random.standard_normal(7).astype(np.float16)
    half[:3] = np.inf, 6e-8, -0.0
    arrays = {"a.weight": ("F32", random.standard_normal((3, 4)).astype(np.float32)), "n": ("I64", np.array(5)), "h": ("F16", half),
              "d": ("F64", random.standard_normal((0, 2)))}
    write_safetensors(folder / "in.safetensors", arrays)
    imported = json.loads(call("import", folder / "in.safetensors", "--output", folder / "w.h5", "--json"))
    assert imported == {"file": str(folder / "w.h5"), "bytes": (folder / "w.h5").stat().st_size, "tensors": len(arrays)}, imported
    exported = json.loads(call("export", folder / "w.h5", "--output", folder / "out.safetensors", "--json"))
    assert exported == {"file": str(folder / "out.safetensors"), "bytes": (folder / "out.safetensors").stat().st_size}, exported
    back = read_safetensors(folder / "out.safetensors")
    assert back.keys() == arrays.keys()
    for name, (kind, array) in arrays.items():
        expected = array.astype(np.float32) if kind == "F16" else array
        assert back[name].shape == expected.shape and back[name].tobytes() == expected.tobytes(), name
    whole = (folder / "in.safetensors").read_bytes()
    for damaged in (whole[:-3], whole[:5], b"\xff" * 64, whole[:8] + b"[" + whole[9:]):
        (folder / "bad.safetensors").write_bytes(damaged)
        assert "[safetensors]" in call("import", folder / "bad.safetensors", "--output", folder / "x.h5", status=1)


def check_npz(folder):
    random = np.random.default_rng(1)
    arrays = {"a.weight": random.standard_normal((3, 4)).astype(np.float32), "n": np.array(5), "empty": random.standard_normal((0, 2)),
              "b": random.standard_normal((2, 3, 1)), "u": np.arange(7, dtype=np.uint8), "i": np.arange(-2, 2, dtype=np.int32)}
    for save in (np.savez, np.savez_compressed):
        save(folder / "in.npz", **arrays, half=np.array([1.5, np.inf], np.float16), big=np.arange(3, dtype=">f4"))
        call("import", folder / "in.npz", "--output", folder / "w.h5")
        call("export", folder / "w.h5", "--output", folder / "out.npz")
        with np.load(folder / "out.npz") as back:
            expected = arrays | {"half": np.array([1.5, np.inf], np.float32), "big": np.arange(3, dtype=np.float32)}
            assert set(back.files) == set(expected), back.files
            for name, array in expected.items():
                assert back[name].dtype == array.dtype and back[name].shape == array.shape, name
                assert back[name].tobytes() == array.tobytes(), name
        with zipfile.ZipFile(folder / "out.npz") as archive:
            assert archive.testzip() is None and all(e.compress_type == zipfile.ZIP_STORED for e in archive.infolist())
        # Without its last few bytes, the length of a comment, minizip still reads an archive: every array has its checksum.
        whole = (folder / "in.npz").read_bytes()
        for damaged in (whole[:-30], whole[:5], b"", b"\xff" * 64, whole[:200] + b"\x55\xaa" * 8 + whole[216:]):
            (folder / "bad.npz").write_bytes(damaged)
            said = call("import", folder / "bad.npz", "--output", folder / "x.h5", status=1)
            assert "bad.npz" in said and len(said.splitlines()) == 1, said
    np.savez(folder / "bad.npz", text=np.array(["a"]))
    assert "expected numbers" in call("import", folder / "bad.npz", "--output", folder / "x.h5", status=1)
    with zipfile.ZipFile(folder / "bad.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    assert "readme.txt" in call("import", folder / "bad.npz", "--output", folder / "x.h5", status=1)


with tempfile.TemporaryDirectory() as name:
    check_weights(pathlib.Path(name))
    check_npz(pathlib.Path(name))
    check_c_files(pathlib.Path(name))
    check_c_names(pathlib.Path(name))
    models = {entry["name"]: entry for entry in json.loads(call("models", "--json"))}
    for model in sys.argv[2:] or models:
        check_model(models[model], pathlib.Path(name))
