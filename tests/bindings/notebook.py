"""The ctypes file, as a notebook uses it: without MPI around it, on NumPy arrays."""
import gc
import os
import sys
import warnings

sys.path.insert(0, sys.argv[1])
import numpy as np
import lockstep_c as lockstep

random = np.random.default_rng(1)
x = random.uniform(-1, 1, (256, 2))
y = (x[:, :1] * x[:, 1:]).astype(np.float32)
model = lockstep.Model({"input": [2], "output": [1], "layers": [
    {"type": "Linear", "in": 2, "out": 32}, {"type": "Tanh"}, {"type": "Linear", "in": 32, "out": 1}]})
trainer = lockstep.Trainer(model, batch=256, seed=1)
losses = [trainer.step(x, y, 1e-2).loss for _ in range(200)]
assert losses[-1] < 0.2 * losses[0], losses[::40]
assert abs(trainer.metric("rmse") ** 2 - losses[-1]) < 1e-5
reverse = trainer.predict(x[::-1])
assert np.array_equal(reverse[::-1], trainer.predict(x))
gradient = trainer.gradient(x)
moved = x.copy()
moved[:, 0] += 1e-2
assert np.abs((trainer.predict(moved) - trainer.predict(x))[:, 0] / 1e-2 - gradient[:, 0]).max() < 0.05
path = os.path.join(sys.argv[2], "notebook.h5")
trainer.save(path)
loaded = lockstep.Model.load(path)
assert np.array_equal(loaded.predict(x), trainer.predict(x)) and loaded.description == model.description
try:
    trainer.step(x[:, :1], y, 1e-2)
except lockstep.Error as error:
    assert error.code == 1 and "'input'" in str(error), error
else:
    raise AssertionError("a wrong shape was taken")
for wrong in ([[1.0, 2.0], [3.0]], [["a", "b"]]):
    try:
        trainer.step(wrong, y[:len(wrong)], 1e-2)
    except TypeError as error:
        assert "makes no array of numbers" in str(error), error
    else:
        raise AssertionError("a list of nothing that counts was taken")

# Lists are arrays too, and arrays live as long as a call reads them.
assert np.array_equal(trainer.predict(x[:3].tolist()), trainer.predict(x[:3]))
assert np.array_equal(trainer.predict([[1, 0]]), trainer.predict(np.array([[1.0, 0.0]])))
assert trainer.step([[0.5, 1], [1, 2]], [[0.5], [2]], 1e-2).samples == 2
with lockstep.Model({"input": [2], "output": [3], "loss": "cross_entropy",
                     "layers": [{"type": "Linear", "in": 2, "out": 3}]}) as classes:
    with lockstep.Trainer(classes, batch=2) as classifier:
        assert classifier.step([[0.5, 1.0], [1.0, 2.0]], [0, 2], 1e-2).samples == 2
        try:
            classifier.step([[0.5, 1.0]], [0.5], 1e-2)
        except TypeError:
            pass
        else:
            raise AssertionError("half a class was taken")
    classifier.free()
    try:
        classifier.step([[0.5, 1.0]], [0], 1e-2)
    except lockstep.Error as error:
        assert "null" in str(error), error
    else:
        raise AssertionError("a trainer that was freed was used")

# As of several ranks, which must free it together.
forgotten = lockstep.Trainer(model, batch=2)
forgotten._alone = False
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    handle = forgotten._handle
    del forgotten
    gc.collect()
assert any(w.category is ResourceWarning and "call free()" in str(w.message) for w in said), said
lockstep._library.lockstep_trainer_free(handle)
print("notebook: all holds")
