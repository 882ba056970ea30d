#!/usr/bin/env python3
"""Random sound cases for adjoint compare and gradcheck: ops, shapes, element types, layouts and
configurations drawn from a seed. Nothing is planted, so whatever fails is a false alarm, or a fault
that nobody knew. Prints each with the command that repeats it; the exit status is 1 if there is one.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import sys

CONFIGS = {"f32": ["naive", "direct", "onednn", "onednn:nchw", "onednn:unfused", "onednn:fast",
                   "direct:fast", "onednn:threads=1", "onednn:mixed", "onednn:mixed:f16", "onednn:tune"],
           "f64": ["naive", "onednn", "naive:nchw"],
           "f16": ["naive", "direct", "onednn", "onednn:nchw", "onednn:fast", "onednn:unfused"],
           "bf16": ["naive", "direct", "onednn", "onednn:nchw", "onednn:fast", "onednn:unfused"]}
CONVOLUTIONS = ("conv2d", "depthwise_conv2d_native")
POOLS = ("max_pool", "avg_pool")
PAIRS = ("add", "sub", "mul", "div", "maximum", "minimum", "pow")


def run(*words):
    return subprocess.run([os.environ.get("ADJOINT", "build/adjoint"), *words], capture_output=True,
                          text=True, timeout=600, check=False)


def some(r, *values):
    return r.choice(values)


def line(r, listed, dtype):
    """The options that say an op of adjoint ops: what is left out follows from the op's own example."""
    op, values = listed["name"], [(a["name"], v) for a in listed["attributes"] for v in a.get("checked", [])]
    words = ["--op", op, "--dtype", dtype]
    n, h, w = some(r, 1, 2, 3, 17), r.randint(3, 15), r.randint(3, 15)
    c = some(r, 1, 2, 3, 5, 8, 15, 16, 17, 24, 32, 33)
    if r.random() < 0.1:  # long sums
        n, h, w, c = some(r, 2, 8), r.randint(32, 72), r.randint(32, 72), some(r, 1, 4, 16)
    k = r.randint(1, 3)
    if op in CONVOLUTIONS:
        out = some(r, 1, 2) if op != "conv2d" else some(r, 1, 3, 8, 16, 17, 32)
        padding = some(r, "SAME", "VALID")
        stride, dilation = some(r, (1, 1), (2, 1), (1, 2))
        h, w = max(h, dilation * (k - 1) + 1), max(w, dilation * (k - 1) + 1)
        words += ["--in", f"{n},{h},{w},{c}", "--filter", f"{k},{k},{c},{out}", "--attr",
                  f"padding={padding},strides=1,{stride},{stride},1,dilations=1,{dilation},{dilation},1"]
    elif op in POOLS:
        words += ["--in", f"{n},{h},{w},{c}", "--attr",
                  f"ksize=1,{k},{k},1,strides=1,{r.randint(1, k)},{r.randint(1, k)},1,"
                  f"padding={some(r, 'SAME', 'VALID')}"]
    elif op in PAIRS and r.random() < 0.2:
        words += ["--in", f"{n},{h},{w},{c}", "--filter", "same"]
    elif r.random() < 0.7 and op not in ("matmul", "cast", "broadcast_to", "reshape", "transpose"):
        words += ["--in", f"{n},{h},{w},{c}"]
    if values and r.random() < 0.5:
        words += ["--attr", "=".join(r.choice(values))]
    return words


def compare(r, op, dtype):
    configs = ["naive:f64"] + r.sample(CONFIGS[dtype], 3 if dtype != "f64" else 2)
    words = ["compare", *line(r, op, dtype), "--configs", ",".join(configs), "--seed",
             str(r.randrange(10**6)), "--runs", "1", "--shrink", "0", "--json"]
    if r.random() < 0.2:
        words.insert(1, "--exact")
    done = run(*words)
    if done.returncode == 3:
        return 0, {}, None  # the line makes no sense of this op
    try:
        rows = json.loads(done.stdout)["rows"]
    except (ValueError, KeyError):
        return 0, {}, (words, done.returncode, done.stdout[-500:] + done.stderr[-500:])
    worst = {}
    for row in rows:
        for error in (row["isolated"], row["in_graph"]):
            kind = row["configuration"].split(":", 1)[-1] if ":" in row["configuration"] else ""
            key = row["op"], dtype, kind if kind in ("fast", "mixed", "mixed:f16") else ""
            ratio = (error["rms_over_rounding"] or 0) / (error["rms_limit"] or 1)
            worst[key] = max(worst.get(key, 0), ratio)
    wrong = (words, done.returncode, "") if done.returncode != 0 else None
    return len(rows), worst, wrong


def gradcheck(r, op, dtype):
    words = ["gradcheck", *line(r, op, dtype), "--backend", some(r, "onednn", "direct", "naive"),
             "--seed", str(r.randrange(10**6)), "--order", some(r, "1", "1", "2"), "--json"]
    done = run(*words)
    if done.returncode == 3:
        return 0, {}, None
    try:
        rows = json.loads(done.stdout)["rows"]
    except (ValueError, KeyError):
        return 0, {}, (words, done.returncode, done.stdout[-500:] + done.stderr[-500:])
    return len(rows), {}, (words, done.returncode, "") if done.returncode == 1 else None


def all_kinds(seed, ops):
    """Every op in every type, in an order of chance, again and again."""
    kinds = [(op, dtype) for op in ops for dtype in op["dtypes"]]
    r = random.Random(seed)
    while True:
        r.shuffle(kinds)
        yield from kinds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--cases", type=int, default=1000, help="rows of both tools' reports; default: 1000")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--worst", type=int, default=10, help="largest RMS errors to print; default: 10")
    p.add_argument("--jobs", type=int, default=1)
    o = p.parse_args()
    ops = [x for x in json.loads(run("ops", "--json").stdout) if x["dtypes"]]
    totals, alarms, worst, i = collections.Counter(), [], {}, 0
    kinds, seen = all_kinds(o.seed, ops), set()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        while sum(totals.values()) < o.cases:
            tasks = []
            for _ in range(4 * o.jobs):
                r = random.Random(f"{o.seed}.{i}")
                op, dtype = next(kinds)
                check = gradcheck if i % 3 == 0 else compare
                tasks.append((check.__name__, op["name"], dtype, pool.submit(check, r, op, dtype)))
                i += 1
            for name, op, dtype, task in tasks:
                rows, ratio, alarm = task.result()
                totals[name] += rows
                if rows > 0:
                    seen.add((op, dtype))
                for key, value in ratio.items():
                    worst[key] = max(worst.get(key, 0), value)
                if alarm is not None:
                    alarms.append(alarm)
                    print(f"exit status {alarm[1]}: adjoint {' '.join(alarm[0])}\n{alarm[2]}", flush=True)
    print(f"{totals['compare']} rows of compare, {totals['gradcheck']} of gradcheck, "
          f"{len({op for op, _ in seen})} ops, {len(seen)} with their types, {len(alarms)} alarms; "
          "largest RMS errors, of their limits:")
    for key in sorted(worst, key=worst.get, reverse=True)[:o.worst]:
        print(f"  {worst[key]:.3f} {' '.join(key)}")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
