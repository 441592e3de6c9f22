"""Lockstep's C library for notebooks: models and trainers on NumPy arrays, by ctypes alone.

    import numpy as np, lockstep_c as lockstep
    model = lockstep.Model({"input": [2], "output": [1], "layers": [...]})   # or lockstep.Model.load("surrogate.h5")
    trainer = lockstep.Trainer(model, batch=64)                              # this process alone; comm=mpi4py's for more
    trainer.step(x, y, 1e-3)
    y = trainer.predict(x)

Arrays may have any strides; what is no array, such as a list, becomes one. A trainer over several ranks is freed by all
of them together, by free() or at the end of a `with` block, in the same order as other trainers:

    with lockstep.Trainer(model, batch=64 * comm.size, comm=comm) as trainer:
        ...

LOCKSTEP_C_LIBRARY names liblockstep_c.so where the system does not find it. An error raises lockstep_c.Error, whose
`code` is one of lockstep_c.h. One thread at a time may use an object.
"""
import ctypes
import json
import os
import warnings

import numpy

_MAX_RANK = 8
_TYPES = {"float32": 1, "float64": 2, "int32": 3}
COMM_ALONE = -(2**63)


class _Array(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("type", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("order", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("extent", ctypes.c_int64 * _MAX_RANK), ("stride", ctypes.c_int64 * _MAX_RANK)]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("batch", ctypes.c_int64), ("optimizer", ctypes.c_char_p),
                ("weight_decay", ctypes.c_double), ("clip_norm", ctypes.c_double), ("seed", ctypes.c_uint64),
                ("memory", ctypes.c_int64), ("skip_not_finite", ctypes.c_int32), ("messages", ctypes.c_int32)]


class Result(ctypes.Structure):
    """What a call did, as lockstep_result of lockstep_c.h."""

    _fields_ = [("size", ctypes.c_size_t), ("loss", ctypes.c_double), ("seconds", ctypes.c_double),
                ("samples", ctypes.c_int64), ("own_samples", ctypes.c_int64), ("steps", ctypes.c_int64),
                ("updates", ctypes.c_int64), ("skipped", ctypes.c_int64), ("stop", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]


class Error(RuntimeError):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def _load():
    library = ctypes.CDLL(os.environ.get("LOCKSTEP_C_LIBRARY", "liblockstep_c.so.1"))
    pointer, array = ctypes.c_void_p, ctypes.POINTER(_Array)
    result = ctypes.POINTER(Result)
    arguments = {
        "model_create": [ctypes.c_char_p, ctypes.POINTER(pointer)],
        "model_load": [ctypes.c_char_p, ctypes.POINTER(pointer)],
        "model_save": [pointer, ctypes.c_char_p],
        "model_free": [pointer],
        "model_description": [pointer],
        "model_predict": [pointer, array, array],
        "model_gradient": [pointer, array, array, array],
        "trainer_create": [pointer, ctypes.c_int64, ctypes.POINTER(_Options), ctypes.POINTER(pointer)],
        "trainer_free": [pointer],
        "trainer_step": [pointer, array, array, ctypes.c_double, result],
        "trainer_evaluate": [pointer, array, array, result],
        "trainer_metric": [pointer, ctypes.c_char_p, ctypes.POINTER(ctypes.c_double)],
        "trainer_predict": [pointer, array, array],
        "trainer_gradient": [pointer, array, array, array],
        "trainer_remember": [pointer, array, array],
        "trainer_replay": [pointer, ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_double, result],
        "trainer_save": [pointer, ctypes.c_char_p],
        "trainer_resume": [pointer, ctypes.c_char_p],
    }
    for name, types in arguments.items():
        getattr(library, "lockstep_" + name).argtypes = types
    library.lockstep_last_error.restype = library.lockstep_version.restype = ctypes.c_char_p
    library.lockstep_model_description.restype = ctypes.c_char_p
    library.lockstep_model_free.restype = library.lockstep_trainer_free.restype = None
    return library


_library = _load()


def version():
    return _library.lockstep_version().decode()


def _check(code):
    if code != 0:
        raise Error(code, _library.lockstep_last_error().decode())


def _array(values, kind=numpy.float64):
    """`values` as an array: one of NumPy as it is, another in a type that the library has. None stays None, and so does
    what makes no array of numbers."""
    if values is None or isinstance(values, numpy.ndarray):
        return values
    try:
        array = numpy.asarray(values)
        if array.dtype.name in _TYPES and array.dtype.kind == numpy.dtype(kind).kind:
            return array
        converted = array.astype(kind)
        return converted if kind is numpy.float64 or numpy.array_equal(converted, array) else values
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return values


def _described(array):
    """A descriptor of a NumPy array with any strides, which keeps it alive; None stays None. What the library cannot
    read gets a type that it refuses, on all ranks together, and _call() then raises TypeError."""
    if array is None:
        return None
    wrong = None
    if not isinstance(array, numpy.ndarray):
        wrong = f"a {type(array).__name__} makes no array of numbers, expected an array of NumPy, or rows of one length"
    elif array.dtype.name not in _TYPES or not array.dtype.isnative:
        wrong = f"an array has the type {array.dtype}, expected float32, float64 or int32"
    elif any(stride % array.itemsize for stride in array.strides) or array.ndim > _MAX_RANK:
        wrong = "an array has strides that are no whole elements, or more than 8 dimensions"
    if wrong:
        described = _Array(size=ctypes.sizeof(_Array))
        described.wrong = wrong
        return ctypes.byref(described)
    described = _Array(size=ctypes.sizeof(_Array), data=array.ctypes.data, type=_TYPES[array.dtype.name],
                       rank=array.ndim, order=2)
    for d in range(array.ndim):
        described.extent[d] = array.shape[d]
        described.stride[d] = array.strides[d] // array.itemsize
    described.array = array
    return ctypes.byref(described)


class _Inference:
    """Predictions of a model or of a trainer, which sets _kind, _handle and description."""

    def _call(self, name, *arguments):
        code = getattr(_library, f"lockstep_{self._kind}_{name}")(self._handle, *arguments)
        for argument in arguments:
            if wrong := getattr(getattr(argument, "_obj", None), "wrong", None):
                raise TypeError(wrong)
        _check(code)

    def predict(self, x):
        x = _array(x)
        y = numpy.empty((len(x), *self.description["output"]), getattr(x, "dtype", None))
        self._call("predict", _described(x), _described(y))
        return y

    def gradient(self, x, direction=None):
        """The gradient of sum(direction * prediction) by x."""
        x = _array(x)
        result = numpy.empty(getattr(x, "shape", 0), getattr(x, "dtype", None))
        self._call("gradient", _described(x), _described(_array(direction)), _described(result))
        return result

    def save(self, path):
        self._call("save", os.fsencode(path))

    def free(self):
        """Frees it; a second call does nothing. Of a trainer over several ranks all of them call it."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            getattr(_library, f"lockstep_{self._kind}_free")(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __del__(self):
        self.free()


class Model(_Inference):
    _kind = "model"

    def __init__(self, description):
        handle = ctypes.c_void_p()
        _check(_library.lockstep_model_create(json.dumps(description).encode(), ctypes.byref(handle)))
        self._adopt(handle)

    def _adopt(self, handle):
        self._handle = handle
        self.description = json.loads(_library.lockstep_model_description(handle))

    @classmethod
    def load(cls, path):
        handle = ctypes.c_void_p()
        _check(_library.lockstep_model_load(os.fsencode(path), ctypes.byref(handle)))
        model = cls.__new__(cls)
        model._adopt(handle)
        return model


class Trainer(_Inference):
    """Collective over `comm`, a communicator of mpi4py or its number in Fortran, in all but predict() and gradient().

    free() and the end of a `with` block are collective too. A trainer over several ranks that is forgotten is not
    freed, as each rank collects garbage at a time of its own, and neither is one whose `with` block an exception
    leaves, as it may be of one rank alone: a ResourceWarning says so, and the memory stays taken."""

    _kind = "trainer"
    _alone = True

    def __init__(self, model, batch, optimizer="adam", comm=COMM_ALONE, **options):
        unknown = set(options) - {"weight_decay", "clip_norm", "seed", "memory", "skip_not_finite", "messages"}
        if unknown:
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        text = optimizer if isinstance(optimizer, str) else json.dumps(optimizer)
        given = _Options(size=ctypes.sizeof(_Options), batch=batch, optimizer=text.encode(), **options)
        number = comm.py2f() if hasattr(comm, "py2f") else comm
        handle = ctypes.c_void_p()
        _check(_library.lockstep_trainer_create(model._handle, number, ctypes.byref(given), ctypes.byref(handle)))
        self._handle, self.description = handle, model.description
        size = comm.Get_size() if hasattr(comm, "Get_size") else 1 if comm == COMM_ALONE else None  # None: not known
        self._alone = size == 1

    def __exit__(self, kind, *_):
        if self._alone or kind is None:
            self.free()

    def __del__(self):
        if self._alone:
            self.free()
        elif getattr(self, "_handle", None):
            warnings.warn("a trainer over several ranks was not freed: call free() on all of them, or use `with`",
                          ResourceWarning, source=self)

    def _pair(self, x, y):
        """Descriptors of samples; targets of classes are whole numbers."""
        of_classes = self.description.get("loss") == "cross_entropy"
        return _described(_array(x)), _described(_array(y, numpy.int32 if of_classes else numpy.float64))

    def _result(self, name, *arguments):
        result = Result(size=ctypes.sizeof(Result))
        self._call(name, *arguments, ctypes.byref(result))
        return result

    def step(self, x, y, learning_rate):
        return self._result("step", *self._pair(x, y), learning_rate)

    def evaluate(self, x, y):
        return self._result("evaluate", *self._pair(x, y))

    def metric(self, name):
        value = ctypes.c_double()
        self._call("metric", name.encode(), ctypes.byref(value))
        return value.value

    def remember(self, x, y):
        self._call("remember", *self._pair(x, y))

    def replay(self, samples, steps, learning_rate, seconds=float("inf")):
        return self._result("replay", samples, steps, seconds, learning_rate)

    def resume(self, path):
        self._call("resume", os.fsencode(path))
