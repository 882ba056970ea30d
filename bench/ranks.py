"""A training step by two ranks of one thread, ours and PyTorch's DistributedDataParallel, in turns."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

import scale
from nets import BATCH, combine
from programs import ROOT, TIMEOUT, say

RANKS = 2
MANY = 4  # more than a machine of two cores has: they share them


def mpirun(ranks=RANKS):
    """The words that start so many ranks, two of them bound; None: there is no MPI, or libadjoint_mpi
    was not made."""
    program = os.environ.get("MPIRUN", "mpirun")
    if shutil.which(program) is None or not (ROOT / "build" / "libadjoint_mpi.so").exists():
        return None
    about = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    words = [program, "-n", str(ranks)]
    if "Open MPI" in about.stdout:
        return words + (["--bind-to", "core"] if ranks == RANKS else
                        ["--oversubscribe", "--bind-to", "none"])
    return words + (["-bind-to", "core"] if ranks == RANKS else [])


def together(ranks, tool, net, batch, o, *more):
    """adjoint bench by so many ranks; batch: of each."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        words = [*mpirun(ranks), tool.path, "bench", "--model", net, "--batch", batch, "--threads", 1,
                 "--seconds", o.seconds, "--json", answer.name, *more]
        done = subprocess.run([str(w) for w in words], cwd=ROOT, capture_output=True, text=True,
                              timeout=TIMEOUT, env=environment, check=False)
        if done.returncode != 0:
            return {"error": (done.stderr.strip() or "nothing said").splitlines()[-1]}
        return json.loads(pathlib.Path(answer.name).read_text())  # the file was replaced


def one(tool, net, batch, threads, o, *more):
    return tool.bench("--model", net, "--batch", batch, "--threads", threads, "--seconds",
                      o.seconds, *more)


def ddp(peer, fmt, net, o):
    answer = peer.step(fmt, "--net", net, "--batch", BATCH[net], "--processes", RANKS, "--seconds",
                       o.seconds)
    return answer.get("train", answer)


def measure(tool, peers, net, o):
    """{what: figures}; the global batch is the net's but for weak, where each rank has it, and for
    four ranks, which have half of it each."""
    batch, half = BATCH[net], BATCH[net] // RANKS
    calls = {}
    variants = [("", [])]
    if o.tune:
        variants.append((", tuned", ["--tune"]))
    for label, more in variants:
        calls.update({
            f"1 rank of 2 threads{label}": lambda more=more: one(tool, net, batch, 2, o, *more),
            f"1 rank of 1 thread{label}": lambda more=more: one(tool, net, batch, 1, o, *more),
            f"2 ranks, half the batch each{label}": lambda more=more:
                together(RANKS, tool, net, half, o, *more),
            f"2 ranks, the batch each{label}": lambda more=more:
                together(RANKS, tool, net, batch, o, *more),
        })
    calls["4 ranks, half the batch each"] = lambda: together(MANY, tool, net, half, o)
    for peer in peers:
        for fmt in peer.formats:
            calls[f"{peer.name} {fmt}"] = lambda peer=peer, fmt=fmt: ddp(peer, fmt, net, o)
    turns = {label: [] for label in calls}
    for turn in range(o.rounds):
        for label, call in calls.items():
            say(f"{net} f32, turn {turn + 1} of {o.rounds}: {label}")
            turns[label].append(call())
    figures = {label: combine(answers) for label, answers in turns.items()}
    for label, answers in turns.items():
        for key in ("hidden", "efficiency_apart"):
            good = [a[key] for a in answers if key in a]
            if good:
                figures[label][key] = statistics.median(good)
    return figures


def predict(tool, net, figures, o):
    """scale.py with the link that two ranks have measured: {"reduced_bytes", and for each number of
    ranks predicted over measured}. It predicts what reductions cost; the step that is predicted from
    is the one of as many ranks that share the machine, but no gradients."""
    halves = figures.get("2 ranks, half the batch each", {})
    if "bits_per_s" not in halves:
        return {}
    say(f"{net} f32: its prediction")
    answer = together(RANKS, tool, net, BATCH[net] // RANKS, o, "--profile")
    if "profile" not in answer:
        return {}
    step = scale.read_step(answer)
    link = scale.Link(halves["bits_per_s"], halves["latency"], scale.ADDS)
    found = {"reduced_bytes": sum(size for _, size in step.buckets)}
    for ranks in (RANKS, MANY):
        measured = figures.get(f"{ranks} ranks, half the batch each", {}).get("efficiency_apart")
        if measured:
            found[str(ranks)] = measured * scale.predict(step, link, ranks) / scale.predict(step, link, 1)
    return found


def hidden(tool_folder, net):
    """Over a link that delays completion (tests/delayed_link.c): the part that is hidden where all
    reductions take a quarter of a step."""
    program = tool_folder / "tests" / "delayed_link"
    if not program.exists():
        return None
    done = subprocess.run([str(program), net, str(BATCH[net]), "1", "0.25"], capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    words = done.stdout.split()
    return float(words[-2]) / 100 if done.returncode == 0 and words else None
