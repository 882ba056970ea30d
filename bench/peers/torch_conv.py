"""PyTorch's convolutions alone, one set of buffers: a cell of the grid a line in, its answer a line out.

Cell: {"kind": "depthwise", "k": 3, "stride": 1, "dilation": 1, "multiplier": 1, "channels": 64,
"outputs": 64, "size": 24, "batch": 32, "dtype": "f32", "seconds": 0.1, "threads": 2}.
Answer: {"channels_last": {"F": ms, "BD": ms, "BW": ms}, "contiguous": {...}} or {"error": "..."}.
"""
import json
import sys

import timing

try:
    import torch
except ImportError as e:
    timing.skip(f"PyTorch: {e}")

FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def measure(c):
    torch.set_num_threads(c["threads"])
    dtype = torch.bfloat16 if c["dtype"] == "bf16" else torch.float32
    depthwise = c["kind"] == "depthwise"
    groups = c["channels"] if depthwise else 1
    outputs = c["channels"] * c["multiplier"] if depthwise else c["outputs"]
    pad = (c["k"] - 1) * c["dilation"] // 2
    answer = {}
    for name, memory in FORMATS.items():
        x = torch.randn(c["batch"], c["channels"], c["size"], c["size"], dtype=dtype)
        x = x.contiguous(memory_format=memory)
        w = torch.randn(outputs, c["channels"] // groups, c["k"], c["k"], dtype=dtype)
        w = w.contiguous(memory_format=memory)

        def forward():
            return torch.nn.functional.conv2d(
                x, w, None, c["stride"], pad, c["dilation"], groups)

        dy = torch.randn_like(forward())

        def backward(which):
            return torch.ops.aten.convolution_backward(
                dy, x, w, None, [c["stride"]] * 2, [pad] * 2, [c["dilation"]] * 2, False, [0, 0],
                groups, which)

        calls = {
            "F": forward,
            "BD": lambda: backward([True, False, False]),
            "BW": lambda: backward([False, True, False]),
        }
        with torch.no_grad():
            answer[name] = {
                direction: timing.measure(call, c["seconds"])["median_ms"]
                for direction, call in calls.items()
            }
    return answer


def main():
    if "--version" in sys.argv:
        timing.say({"peer": "PyTorch", "version": torch.__version__, "formats": list(FORMATS)})
        return
    for line in sys.stdin:
        try:
            timing.say(measure(json.loads(line)))
        except RuntimeError as e:
            timing.say({"error": str(e).splitlines()[0]})


if __name__ == "__main__":
    main()
