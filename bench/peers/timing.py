"""What the peers share: a clock, and the words a peer answers in.

A peer is a script that run.py starts with any Python that can import its framework.
  --version   prints {"peer", "version", "formats"} and, if it does not train, "parts"; exit 77 and a
              sentence when it cannot be run.
"""
import json
import resource
import sys
import time

WARM_UP = 3
INFERENCE = ["infer", "infer32", "infer1"]  # a training batch, 32 images, one


def measure_once(call):
    """Seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def summary(times):
    """Median, least and quartiles in ms."""
    times = sorted(times)
    n = len(times)
    return {
        "median_ms": 1e3 * times[n // 2],
        "min_ms": 1e3 * times[0],
        "q1_ms": 1e3 * times[n // 4],
        "q3_ms": 1e3 * times[n * 3 // 4],
        "runs": n,
    }


def measure(call, seconds):
    """Runs call for so many seconds."""
    for _ in range(WARM_UP):
        call()
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        times.append(measure_once(call))
    return summary(times)


def inference_sizes(o):
    """{part: images} of what is asked for."""
    return {part: n for part, n in zip(INFERENCE, (o.batch, 32, 1)) if part in o.parts}


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def line(answer):
    return json.dumps(answer) + "\n"


def say(answer):
    print(line(answer), end="", flush=True)


def skip(sentence):
    print(sentence)
    sys.exit(77)
