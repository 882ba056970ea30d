#!/usr/bin/env python3
"""scale.py FILE RANKS... [--link BITS,SECONDS] [--adds BYTES] - predicts a training step on more ranks.

FILE is what two ranks have measured; without --link the links are as theirs:

    mpirun -n 2 adjoint bench --model vgg6 --threads 1 --profile --json step.json
    bench/scale.py step.json 8 64 1024 --link 10e9,5e-6

The model and what it leaves out: docs/guide/many-machines.md. Times are seconds, sizes bytes.
"""
import argparse
import collections
import json
import math

ADDS = 1e10  # bytes a second that a rank adds, of vectors that fit into a cache
SHORT = 2048 * 4  # bytes that are exchanged whole (backends/mpi/reduction.c)
Link = collections.namedtuple("Link", "bits_per_second latency adds")
# When all gradients are there; the time of updates; the buckets (complete at, bytes) in that order.
Step = collections.namedtuple("Step", "backward updates buckets")


def reduction(link, ranks, size):
    """Seconds of a reduction as backends/mpi does it: a power of two of ranks exchange halves (short
    vectors: all of it) in log2 P levels, other numbers add up a tree and send down again.

    >>> link = Link(8e9, 1e-5, 4e9)  # a megabyte takes a millisecond
    >>> [round(1e6 * reduction(link, p, 4000), 3) for p in (1, 2, 8)]  # once, three times
    [0.0, 15.0, 45.0]
    >>> [round(1e6 * reduction(link, p, 1e6), 3) for p in (2, 4)]  # 1/2 and 3/4 each way
    [1145.0, 1727.5]
    >>> round(1e6 * reduction(link, 3, 1e6), 3)  # 2 levels of 2 (10 + 1000) + 250
    4540.0
    """
    if ranks < 2:
        return 0
    levels, message, part = math.ceil(math.log2(ranks)), 8 * size / link.bits_per_second, 1 - 1 / ranks
    if ranks & (ranks - 1) != 0:
        return levels * (2 * (link.latency + message) + size / link.adds)
    if size < SHORT:
        return levels * (link.latency + message + size / link.adds)
    return 2 * levels * link.latency + 2 * part * message + part * size / link.adds


def predict(step, link, ranks):
    """Seconds of the step. A bucket's reduction starts when it is complete and those before it have
    arrived; its updates follow those of the bucket before.

    >>> link = Link(8e9, 1e-5, 4e9)  # a megabyte between two ranks: 1.145 ms
    >>> [round(1e3 * predict(Step(0.01, 0.002, [(1e-3 * a, 1e6), (1e-3 * b, 1e6)]), link, 2), 3)
    ...  for a, b in ((2, 5), (2, 10), (10, 10))]  # hidden; half an update hides a part; in a row
    [12.0, 12.145, 13.29]
    """
    arrived, now, total = 0, step.backward, sum(size for _, size in step.buckets)
    for at, size in step.buckets:
        arrived = max(arrived, at) + reduction(link, ranks, size)
        now = max(now, arrived) + step.updates * size / total
    return max(now, step.backward + step.updates)


def read_step(measured):
    """The Step of a report of bench --profile.

    >>> rows = [("conv2d_backprop_filter", 3, 0), ("all_reduce_start", 9, 80), ("relu_grad", 1, 0),
    ...         ("all_reduce_start", 9, 40), ("all_reduce_wait", 9, 40), ("sub", 2, 0)]
    >>> read_step({"profile": [{"op": o, "us": 1e6 * s, "bytes": b} for o, s, b in rows]})
    Step(backward=4.0, updates=2.0, buckets=[(3.0, 40.0), (4.0, 20.0)])
    """
    now, backward, buckets = 0, 0, []
    for row in measured["profile"]:
        if row["op"] == "all_reduce_start":
            buckets.append((now, row["bytes"] / 2))  # read and written
            backward = now
        elif row["op"] != "all_reduce_wait":
            now += 1e-6 * row["us"]
    return Step(backward, now - backward, buckets)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("file", help="of mpirun -n 2 adjoint bench --profile --json FILE")
    p.add_argument("ranks", type=int, nargs="+")
    p.add_argument("--link", help="bits a second and seconds of latency, 10e9,5e-6; default: as measured")
    p.add_argument("--adds", type=float, default=ADDS, help="bytes a second that a rank adds (%(default)g)")
    o = p.parse_args()
    with open(o.file, encoding="utf-8") as f:
        measured = json.load(f)
    if "profile" not in measured or "ranks" not in measured:
        p.error(f"{o.file}: expected a report of several ranks with --profile")
    bits, latency = map(float, o.link.split(",")) if o.link else (measured["bits_per_s"], measured["latency"])
    step, link = read_step(measured), Link(bits, latency, o.adds)
    alone = predict(step, link, 1)
    print(f"{measured['model']}, batch {measured['batch']} a rank: {1e3 * alone:.3f} ms by itself, "
          f"{1e-6 * sum(size for _, size in step.buckets):.2f} MB in {len(step.buckets)} buckets")
    print("   ranks     step, ms   exposed, ms   efficiency     images/s")
    for ranks in o.ranks:
        seconds = predict(step, link, ranks)
        print(f"{ranks:8} {1e3 * seconds:12.3f} {1e3 * (seconds - alone):13.3f} {alone / seconds:12.3f} "
              f"{ranks * measured['batch'] / seconds:12.0f}")


if __name__ == "__main__":
    main()
