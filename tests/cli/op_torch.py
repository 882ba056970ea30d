"""op_torch.py TOOL: ops of adjoint on random tensors, through its command line, beside PyTorch's.

Prints what differs by more than the tolerance; exit status 1 if anything does, 77 without PyTorch.
"""
import json
import struct
import subprocess
import sys

try:
    import torch
    from torch.nn import functional
except ImportError:
    sys.exit(77)

NAMES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16",
         torch.bfloat16: "BF16", torch.int32: "I32"}
TYPES = {name: dtype for dtype, name in NAMES.items()}


def pack(tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        t = t.detach().contiguous()
        half = t.dtype in (torch.bfloat16, torch.float16)
        raw = (t.view(torch.int16) if half else t).numpy().tobytes()
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def unpack(file):
    n = struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8:8 + n])
    header.pop("__metadata__", None)
    tensors = {}
    for name, about in header.items():
        first, last = (8 + n + offset for offset in about["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(file[first:last]),
                                         dtype=TYPES[about["dtype"]]).reshape(about["shape"])
    return tensors


def run(op, tensors, *options):
    words = [sys.argv[1], "op", op, "--in", "-", "--out", "-", *options]
    return unpack(subprocess.run(words, input=pack(tensors), stdout=subprocess.PIPE,
                                 check=True).stdout)


def nchw(x):
    return x.permute(0, 3, 1, 2)


def nhwc(x):
    return x.permute(0, 2, 3, 1)


def hwio(w):
    return w.permute(3, 2, 0, 1)


PADS = "padding=EXPLICIT,explicit_paddings=0,0,1,1,1,1,0,0"
# op, shapes of the operands, the same in PyTorch, options
CASES = [
    ("conv2d", {"input": (2, 9, 7, 3), "filter": (3, 3, 3, 4)},
     lambda x, w: nhwc(functional.conv2d(nchw(x), hwio(w), stride=2, padding=1)),
     ("--attr", "strides=1,2,2,1," + PADS)),
    ("conv2d", {"input": (1, 8, 8, 4), "filter": (3, 3, 2, 6)},
     lambda x, w: nhwc(functional.conv2d(nchw(x), hwio(w), dilation=2, padding=1, groups=2)),
     ("--attr", "dilations=1,2,2,1," + PADS)),
    ("matmul", {"a": (3, 5), "b": (4, 5)}, lambda a, b: a @ b.T, ("--attr", "transpose_b=1")),
    ("softmax", {"x0": (4, 6)}, lambda x: torch.softmax(x, 1), ()),
    ("gelu", {"x0": (40,)}, functional.gelu, ()),
    ("elu", {"x0": (40,)}, lambda x: functional.elu(x, 0.7), ("--attr", "0.7")),
    ("silu", {"x0": (40,)}, functional.silu, ()),
    ("max_pool", {"input": (1, 6, 6, 3)}, lambda x: nhwc(functional.max_pool2d(nchw(x), 2)),
     ("--attr", "ksize=1,2,2,1")),
    ("batch_norm", {"x": (4, 5, 5, 6), "gamma": (6,), "beta": (6,)},
     lambda x, g, b: nhwc(functional.batch_norm(nchw(x), None, None, g, b, True, eps=1e-3)),
     ("--attr", "1e-3")),
    ("group_norm", {"x": (2, 5, 5, 6), "gamma": (6,), "beta": (6,)},
     lambda x, g, b: nhwc(functional.group_norm(nchw(x), 3, g, b, eps=1e-5)),
     ("--attr", "epsilon=1e-5,groups=3")),
    ("concat", {"x0": (3, 4), "x1": (2, 4)}, lambda a, b: torch.cat([a, b]), ("--attr", "0")),
    ("transpose", {"x0": (2, 3, 4)}, lambda x: x.permute(2, 0, 1), ("--attr", "2,0,1")),
]
# Half types: one rounding of a sum in float.
TOLERANCES = {torch.float64: 1e-11, torch.float32: 2e-5, torch.bfloat16: 0.06, torch.float16: 8e-3}


def differs(what, got, wanted, tolerance):
    worst = (got.double() - wanted.double()).abs().max().item()
    if got.dtype == wanted.dtype and worst <= tolerance * (1 + wanted.double().abs().max().item()):
        return 0
    print(f"{what}: {worst} ({got.dtype}, expected {wanted.dtype})")
    return 1


def try_case(op, shapes, reference, options, dtype):
    tensors = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    if op == "batch_norm" or op == "group_norm":
        kept = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
        tensors.update({n: t.to(kept) for n, t in tensors.items() if n != "x"})
    exact = {name: t.double().requires_grad_() for name, t in tensors.items()}
    y = reference(*exact.values())
    dy = torch.randn(y.shape).to(dtype)
    y.backward(dy.double())
    got = run(op, {**tensors, "dy": dy}, "--grad", *options)
    wanted = {"y": y.to(dtype), **{"d" + n: t.grad.to(tensors[n].dtype) for n, t in exact.items()}}
    if got.keys() != wanted.keys():
        print(f"{op}: got {list(got)}, expected {list(wanted)}")
        return 1
    return sum(differs(f"{op} {dtype} {name}", got[name], wanted[name], TOLERANCES[dtype])
               for name in wanted)


def main():
    torch.manual_seed(1)
    wrong = sum(try_case(*case, dtype) for case in CASES for dtype in TOLERANCES)
    logits = torch.randn(3, 4, requires_grad=True)
    labels = torch.tensor([1, 0, 3], dtype=torch.int32)
    loss = functional.cross_entropy(logits, labels.long(), reduction="none", label_smoothing=0.1)
    loss.sum().backward()
    got = run("sparse_softmax_cross_entropy",
              {"logits": logits, "labels": labels, "dy": torch.ones(3)}, "--grad", "--attr", "0.1")
    wrong += differs("cross entropy", got["y"], loss, 2e-6)
    wrong += differs("cross entropy, gradient", got["dlogits"], logits.grad, 2e-6)
    print(f"{4 * len(CASES) + 1} cases, {wrong} tensors differ")
    return wrong > 0


sys.exit(main())
