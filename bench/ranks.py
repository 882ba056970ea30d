"""A training step by two ranks of one thread, ours and PyTorch's DistributedDataParallel, in turns."""
import json
import os
import shutil
import statistics
import subprocess
import tempfile

from nets import BATCH, combine
from programs import ROOT, TIMEOUT, say

RANKS = 2


def mpirun():
    """The words that start two bound ranks; None: there is no MPI, or libadjoint_mpi was not made."""
    program = os.environ.get("MPIRUN", "mpirun")
    if shutil.which(program) is None or not (ROOT / "build" / "libadjoint_mpi.so").exists():
        return None
    about = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    words = [program, "-n", str(RANKS)]
    return words + (["--bind-to", "core"] if "Open MPI" in about.stdout else ["-bind-to", "core"])


def together(start, tool, net, batch, o):
    """adjoint bench by two ranks; batch: of each."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        words = [*start, tool.path, "bench", "--model", net, "--batch", batch, "--threads", 1,
                 "--seconds", o.seconds, "--json", answer.name]
        done = subprocess.run([str(w) for w in words], cwd=ROOT, capture_output=True, text=True,
                              timeout=TIMEOUT, env=environment, check=False)
        if done.returncode != 0:
            return {"error": (done.stderr.strip() or "nothing said").splitlines()[-1]}
        return json.loads(answer.read())


def one(tool, net, batch, threads, o):
    return tool.bench("--model", net, "--batch", batch, "--threads", threads, "--seconds",
                      o.seconds)


def ddp(peer, fmt, net, o):
    answer = peer.step(fmt, "--net", net, "--batch", BATCH[net], "--processes", RANKS, "--seconds",
                       o.seconds)
    return answer.get("train", answer)


def measure(start, tool, peers, net, o):
    """{what: figures}; the global batch is the net's but for weak, where each rank has it."""
    batch = BATCH[net]
    calls = {
        "1 rank of 2 threads": lambda: one(tool, net, batch, 2, o),
        "1 rank of 1 thread": lambda: one(tool, net, batch, 1, o),
        "2 ranks, half the batch each": lambda: together(start, tool, net, batch // RANKS, o),
        "2 ranks, the batch each": lambda: together(start, tool, net, batch, o),
    }
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
        good = [a["hidden"] for a in answers if "hidden" in a]
        if good:
            figures[label]["hidden"] = statistics.median(good)
    return figures


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
