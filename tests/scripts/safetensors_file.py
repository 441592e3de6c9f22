"""Files of safetensors, written and read by the format's description, for tests of `lockstep export` and `import`."""
import json
import struct

import numpy as np

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def write_safetensors(path, arrays):
    """`arrays` are pairs of the type's name and the array, by name."""
    header, end = {}, 0
    for name, (kind, array) in arrays.items():
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *(array.tobytes() for _, array in arrays.values())]))


def read_safetensors(path):
    """Arrays by name."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    assert length % 8 == 0
    return {name: np.frombuffer(data[8 + length:][slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}
