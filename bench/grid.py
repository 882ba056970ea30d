"""The grid of convolutions: its cells, and their measurement. A configuration has three cells: forward
(F), backprop_input (BD), backprop_filter (BW)."""
import itertools

import floors

DIRECTIONS = ("F", "BD", "BW")
MOST_BYTES = 256 << 20  # of one tensor
MOST_GFLOP = 40  # of one direction
ANSWER_SECONDS = 120


def cell(kind, k, stride, dilation, multiplier, channels, size, dtype="f32", batch=32, outputs=0):
    return {
        "kind": kind, "k": k, "stride": stride, "dilation": dilation, "multiplier": multiplier,
        "channels": channels, "size": size, "dtype": dtype, "batch": batch,
        "outputs": outputs or channels * multiplier,
    }


def name(c):
    filters = f"x{c['multiplier']}" if c["kind"] == "depthwise" else f"->{c['outputs']}"
    return (f"{c['kind']} {c['k']}x{c['k']} s{c['stride']} d{c['dilation']} {c['channels']}{filters} "
            f"{c['size']}x{c['size']} batch {c['batch']} {c['dtype']}")


def pad(c):
    return (c["k"] - 1) * c["dilation"] // 2


def size_of_output(c):
    return (c["size"] + 2 * pad(c) - (c["k"] - 1) * c["dilation"] - 1) // c["stride"] + 1


def gflop(c):
    inputs = 1 if c["kind"] == "depthwise" else c["channels"]
    return 2e-9 * c["batch"] * size_of_output(c) ** 2 * c["outputs"] * inputs * c["k"] ** 2


def makes_sense(c):
    element = 2 if c["dtype"] == "bf16" else 4
    largest = max(c["channels"] * c["size"] ** 2, c["outputs"] * size_of_output(c) ** 2)
    if (c["k"] - 1) * c["dilation"] + 1 > c["size"]:
        return False
    if c["k"] == 1 and (c["dilation"] > 1 or c["kind"] == "depthwise"):
        return False  # a factor for each channel is no convolution
    return largest * c["batch"] * element <= MOST_BYTES and gflop(c) <= MOST_GFLOP


def full():
    """Every configuration of the issue's grid that makes sense."""
    sizes = itertools.product(
        ("depthwise", "dense"), (1, 3, 5, 7), (1, 2), (1, 2), (1, 2, 4, 8),
        (3, 16, 32, 64, 128, 256), (6, 12, 24, 56, 112), ("f32", "bf16"))
    return [c for c in (cell(*s) for s in sizes) if makes_sense(c)]


def with_floors():
    """Those whose floor is known and whose channels are the grid's: 72."""
    return [
        cell("depthwise", k, s, d, m, c, 24, batch=8 if c * m >= 512 else 32)
        for k, s, d, m, c in floors.depthwise_floors() if c in (16, 64, 128)
    ]


def listed():
    """100 configurations, 300 cells."""
    cells = with_floors()
    cells += [cell("depthwise", *c, "bf16") for c in (
        (3, 1, 1, 1, 64, 24), (3, 2, 1, 1, 64, 24), (5, 1, 1, 1, 64, 24), (3, 1, 2, 1, 64, 24),
        (3, 1, 1, 2, 64, 24), (3, 1, 1, 8, 16, 24))]
    cells += [cell("depthwise", *c) for c in (
        (3, 1, 1, 1, 3, 96), (3, 1, 1, 1, 32, 112), (3, 1, 1, 1, 64, 56), (3, 1, 1, 1, 256, 12),
        (3, 1, 1, 1, 256, 6), (3, 2, 1, 1, 64, 56), (7, 1, 1, 1, 64, 24), (7, 2, 1, 1, 64, 24))]
    cells += [cell("dense", *c) for c in (
        (1, 1, 1, 1, 64, 24), (1, 1, 1, 1, 256, 6), (3, 1, 1, 1, 16, 56), (3, 1, 1, 1, 64, 24),
        (3, 1, 1, 1, 128, 12), (3, 1, 1, 1, 256, 6), (5, 1, 1, 1, 32, 24), (3, 2, 1, 1, 64, 24),
        (1, 2, 1, 1, 64, 24), (3, 1, 2, 1, 64, 24))]
    cells += [cell("dense", 7, 2, 1, 1, 3, 224, outputs=64), cell("dense", 3, 1, 1, 1, 3, 56, outputs=64),
              cell("dense", 3, 1, 1, 1, 64, 24, "bf16"), cell("dense", 1, 1, 1, 1, 64, 24, "bf16")]
    assert len(cells) == 100, len(cells)
    return cells


# Where oneDNN 2.6.3 has no kernel of its own, in NHWC: configurations with their directions.
HOLES = {
    name(cell("depthwise", 3, 1, 2, 1, 64, 24)): ("BD", "BW"),
    name(cell("depthwise", 3, 1, 1, 2, 64, 24)): DIRECTIONS,
    name(cell("depthwise", 5, 1, 1, 1, 64, 24)): ("BW",),
    name(cell("depthwise", 3, 1, 1, 1, 3, 96)): DIRECTIONS,
    name(cell("dense", 7, 2, 1, 1, 3, 224, outputs=64)): ("BD",),
}


def floor_of(c, direction):
    """GFLOP/s to be reached in an f32 depthwise cell; None if it has no floor."""
    known = floors.depthwise_floors().get(
        (c["k"], c["stride"], c["dilation"], c["multiplier"], c["channels"]))
    counts = (c["kind"] == "depthwise" and c["dtype"] == "f32" and c["size"] == 24 and known
              and c["channels"] >= floors.CELL_CHANNELS and 1e3 * gflop(c) >= floors.CELL_MFLOP)
    return known[direction] if counts else None


# ---- measuring ----


def arguments(c):
    """The cell as adjoint bench is told it."""
    depthwise = c["kind"] == "depthwise"
    last = c["multiplier"] if depthwise else c["outputs"]
    p = pad(c)
    return [
        "--op", "depthwise_conv2d_native" if depthwise else "conv2d",
        "--in", f"{c['batch']},{c['size']},{c['size']},{c['channels']}",
        "--filter", f"{c['k']},{c['k']},{c['channels']},{last}",
        "--attr", f"strides=1,{c['stride']},{c['stride']},1,dilations=1,{c['dilation']},{c['dilation']},1,"
                  f"padding=EXPLICIT,explicit_paddings=0,0,{p},{p},{p},{p},0,0",
        "--dtype", c["dtype"],
    ]


def direction_of(op):
    return "BD" if op.endswith("input") else "BW" if op.endswith("filter") else "F"


def summary(answer):
    """By direction: the planned candidate, and the fastest of each backend, in ms."""
    cells = {d: {} for d in DIRECTIONS}
    for row in answer.get("rows", []):
        to = cells[direction_of(row["op"])]
        if row["us"] is None:
            continue
        found = {"ms": 1e-3 * row["us"], "min_ms": 1e-3 * row["min_us"], "impl": row["implementation"],
                 "backend": row["backend"]}
        if row["planned"]:
            to["planned"] = found
        best = to.get(row["backend"])
        if best is None or found["ms"] < best["ms"]:
            to[row["backend"]] = found
    return cells


def measure(tool, peers, c, o):
    """One configuration: ours, every candidate but the naive ones, then each peer."""
    result = {"cell": c}
    answer = tool.bench(*arguments(c), "--all", "--backend", "onednn,direct", "--warm",
                        "--seconds", o.cell_seconds, "--threads", o.threads)
    result["error"] = answer.get("error")
    result["ours"] = summary(answer)
    result["peers"] = {}
    for peer in peers:
        question = dict(c, seconds=o.cell_seconds, threads=o.threads)
        result["peers"][peer.name] = peer.ask(question, ANSWER_SECONDS)
    return result
