"""ONNX's operators in PyTorch: an evaluator that shares nothing with Lockstep, for tests of `lockstep export`.

Python's onnx reads and checks the models. Version 1.12 has no evaluator of its own; that of 1.17 normalises by the statistics of the
batch in BatchNormalization before operator set 14, and passes an output without a name where an input is left out.
"""
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper


def _pads(attributes, axes):
    pads = attributes.get("pads", [0] * (2 * axes))
    assert pads[:axes] == pads[axes:], "padding of two sizes"
    return pads[:axes]


def _conv(x, weight, bias=None, **a):
    axes = x.dim() - 2
    return (F.conv1d, F.conv2d, F.conv3d)[axes - 1](x, weight, bias, a["strides"], _pads(a, axes), a["dilations"], a["group"])


def _conv_transpose(x, weight, bias=None, **a):
    axes = x.dim() - 2
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
    return function(x, weight, bias, a["strides"], _pads(a, axes), a["output_padding"], a["group"], a["dilations"])


def _max_pool(x, **a):
    axes = x.dim() - 2
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    return function(x, a["kernel_shape"], a["strides"], _pads(a, axes), a["dilations"], bool(a["ceil_mode"]))


def _average_pool(x, **a):
    axes = x.dim() - 2
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[axes - 1]
    return function(x, a["kernel_shape"], a["strides"], _pads(a, axes), bool(a["ceil_mode"]), bool(a["count_include_pad"]))


def _slice(x, starts, ends, axes, steps=None):
    result = x.numpy()
    steps = torch.ones_like(starts) if steps is None else steps
    for start, end, axis, step in zip(*(v.tolist() for v in (starts, ends, axes, steps))):
        index = [slice(None)] * result.ndim
        index[axis] = slice(start, None if step < 0 and end < -result.shape[axis] else end, step)
        result = result[tuple(index)]
    return torch.from_numpy(np.ascontiguousarray(result))


def _pad(x, pads, value, **_):
    pads = pads.tolist()
    rank = x.dim()
    words = [word for axis in reversed(range(rank)) for word in (pads[axis], pads[rank + axis])]
    return F.pad(x, words, value=value.item())


def _gemm(x, weight, bias=None, **a):
    y = x @ (weight.T if a.get("transB") else weight)
    return y if bias is None else y + bias


def _reduce(function):
    return lambda x, given=None, **a: function(x, a["axes"] if given is None else given.tolist(), bool(a["keepdims"]))


def _recurrent(step, gates):
    """LSTM and GRU as ONNX's specification has them: one direction, sequences of one length."""
    def run(x, weights, recurrent, bias=None, lengths=None, *states, hidden_size, direction, **more):
        assert lengths is None and more in ({}, {"linear_before_reset": 1})
        samples = x.shape[1]
        biases = torch.zeros(2 * gates * hidden_size, dtype=x.dtype) if bias is None else bias[0]
        given = [s[0] for s in states] or [torch.zeros(samples, hidden_size, dtype=x.dtype) for _ in range(2 if gates == 4 else 1)]
        results = [None] * len(x)
        for t in range(len(x))[::1 if direction == b"forward" else -1]:
            products = (x[t] @ weights[0].T + biases[:gates * hidden_size]).chunk(gates, 1)
            own = [given[0] @ w.T + b for w, b in zip(recurrent[0].chunk(gates), biases[gates * hidden_size:].chunk(gates))]
            given = step(products, own, given)
            results[t] = given[0]
        return (torch.stack(results)[:, None], *(s[None] for s in given))
    return run


def _lstm_step(x, h, states):
    i, o, f, c = (a + b for a, b in zip(x, h))
    cell = torch.sigmoid(f) * states[1] + torch.sigmoid(i) * torch.tanh(c)
    return [torch.sigmoid(o) * torch.tanh(cell), cell]


def _gru_step(x, h, states):
    z, r = torch.sigmoid(x[0] + h[0]), torch.sigmoid(x[1] + h[1])
    return [(1 - z) * torch.tanh(x[2] + r * h[2]) + z * states[0]]


OPERATORS = {
    "LSTM": _recurrent(_lstm_step, 4), "GRU": _recurrent(_gru_step, 3), "Not": torch.logical_not, "Less": torch.lt,
    "Identity": lambda x: x, "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Neg": torch.neg, "Abs": torch.abs,
    "Max": torch.maximum, "Min": torch.minimum, "Sign": torch.sign, "Relu": torch.relu, "Sqrt": torch.sqrt, "Exp": torch.exp,
    "Log": torch.log, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "Erf": torch.erf, "Sin": torch.sin, "Cos": torch.cos,
    "Pow": torch.pow, "Where": torch.where, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "LessOrEqual": torch.le, "Equal": torch.eq,
    "MatMul": torch.matmul, "Gemm": _gemm, "Conv": _conv, "ConvTranspose": _conv_transpose, "MaxPool": _max_pool,
    "AveragePool": _average_pool, "Slice": _slice, "Pad": _pad,
    "BatchNormalization": lambda x, g, b, m, v, epsilon: F.batch_norm(x, m, v, g, b, False, 0, epsilon),
    "Softmax": lambda x, axis: torch.softmax(x, axis),
    "Reshape": lambda x, shape: x.reshape(shape.tolist()), "Transpose": lambda x, perm: x.permute(perm),
    "Expand": lambda x, shape: torch.broadcast_to(x, torch.broadcast_shapes(x.shape, tuple(shape.tolist()))),
    "Concat": lambda *x, axis: torch.cat(x, axis), "Split": lambda x, sizes, axis: torch.split(x, sizes.tolist(), axis),
    "Gather": lambda x, i, axis: torch.index_select(x, axis, i.flatten()).reshape(x.shape[:axis] + i.shape + x.shape[axis + 1:]),
    "Cast": lambda x, to: x.to({1: torch.float32, 11: torch.float64}[to]),
    "ReduceSum": _reduce(torch.sum), "ReduceMean": _reduce(torch.mean), "ReduceMax": _reduce(torch.amax),
    "ReduceMin": _reduce(torch.amin), "ReduceLogSumExp": _reduce(torch.logsumexp),
}


def load_tensor(path):
    message = onnx.TensorProto()
    message.ParseFromString(path.read_bytes())
    return message.name, numpy_helper.to_array(message)


def compare(path, folder):
    """Checks the model, and that it makes of the folder's inputs its output; returns the number of nodes and the largest difference, as a
    part of the largest number."""
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    inputs = dict(load_tensor(file) for file in sorted(folder.glob("input_*.pb")))
    assert inputs.keys() == {value.name for value in model.graph.input}, (path, inputs.keys())
    name, expected = load_tensor(folder / "output_0.pb")
    found = run(model, inputs)[name]
    assert found.shape == expected.shape, (path, found.shape, expected.shape)
    assert expected.std() > 1e-3, f"{path}: all results are about {expected.mean():.2g}: they show nothing"
    distance = np.abs(found - expected).max() / np.abs(expected).max()
    assert distance < 1e-5, f"{path}: results differ by {distance:.2g} of the largest one"
    return len(model.graph.node), distance


def run(model, inputs):
    """The outputs of a model, as arrays by name; `inputs` are arrays by name."""
    values = {"": None}
    for tensor in model.graph.initializer:
        values[tensor.name] = torch.from_numpy(numpy_helper.to_array(tensor).copy())
    values.update({name: torch.from_numpy(array.copy()) for name, array in inputs.items()})
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        attributes = {name: list(v) if not isinstance(v, (int, float, bytes)) else v for name, v in attributes.items()}
        result = OPERATORS[node.op_type](*(values[name] for name in node.input), **attributes)
        values.update(zip(node.output, result if len(node.output) > 1 else (result,)))
        values[""] = None  # an output without a name is no input
    return {output.name: values[output.name].numpy() for output in model.graph.output}
