"""tensors.py - safetensors files of NumPy arrays, and their comparison."""
import json

import numpy as np

NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "int32": "I32", "int64": "I64", "int16": "I16",
         "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
         "bfloat16": "BF16"}


def has_numbers(a):
    """True if a safetensors file can hold the value."""
    return not isinstance(a, (list, dict, type(None))) and str(np.asarray(a).dtype) in NAMES


def merged(a):
    """The array as adjoint imports it: of more than 6 axes the last ones are one."""
    return a.reshape(a.shape[:5] + (-1,)) if a.ndim > 6 else a


def write_tensors(path, tensors):
    """Writes a safetensors file; False if a value is none that it can hold."""
    header, data = {}, b""
    for name, a in tensors.items():
        if not has_numbers(a):
            return False
        a = merged(np.asarray(a))
        raw = np.ascontiguousarray(a).tobytes()
        header[name] = {"dtype": NAMES[str(a.dtype)], "shape": list(a.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return True


def read_tensors(path):
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    types = {v: k for k, v in NAMES.items()}
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        b, e = t["data_offsets"]
        part = raw[8 + n + b:8 + n + e]
        if t["dtype"] == "BF16":
            a = (np.frombuffer(part, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            a = np.frombuffer(part, types[t["dtype"]])
        out[name] = a.reshape(t["shape"])
    return out


def is_same(got, want, rtol, atol):
    """How the arrays differ; "" if they are equal but for the tolerances."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    g, w = got.astype(np.float64), want.astype(np.float64)
    bad = ~np.isclose(g, w, rtol=rtol, atol=max(atol, 1e-7), equal_nan=True)
    return f"{bad.sum()} of {bad.size} differ, by {np.nanmax(np.abs(g - w))}" if bad.any() else ""


def distance(got, want, least=1e-30):
    """The largest error, relative to the largest value or to `least`: the gradient of a bias before a batch norm
    is 0 but for rounding."""
    want = np.asarray(want, np.float64)
    return float(np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), least))
