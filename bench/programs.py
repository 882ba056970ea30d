"""The programs that are timed: ours, and the peers that can be run here."""
import json
import os
import pathlib
import select
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"
SKIP = 77
TIMEOUT = 900
PARTS = ("train", "infer", "infer32", "infer1")  # a step; inference of the training batch, of 32, of 1


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_json(arguments):
    """The object that a program prints; {"error": sentence} when there is none."""
    try:
        done = subprocess.run(
            [str(a) for a in arguments], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {TIMEOUT} s"}
    if done.returncode == 0:
        return json.loads(done.stdout)
    words = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()[-1]
    return {"error": f"exit status {done.returncode}: {words}", "status": done.returncode}


class Tool:
    """adjoint bench."""

    def __init__(self, path):
        self.path = path

    def bench(self, *arguments):
        return run_json([self.path, "bench", "--json", *arguments])


class Peer:
    """A script of bench/peers with the Python that can run it."""

    def __init__(self, python, script, about):
        self.python, self.script = python, script
        self.name = f"{about['peer']} {about['version'].split('+')[0]}"
        self.formats = about["formats"]
        self.parts = about.get("parts", PARTS)
        self.process = None

    def step(self, fmt, *arguments):
        return run_json([self.python, self.script, "--format", fmt, *arguments])

    def ask(self, question, seconds):
        """A line to a process that stays, and its answer."""
        if self.process is None:
            self.process = subprocess.Popen(
                [self.python, str(self.script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            ready = select.select([self.process.stdout], [], [], seconds)[0]
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self.close()
        return {"error": "no answer"}

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def pythons():
    """Those that BENCH_PYTHON names, as PATH is written, this one and the system's."""
    named = os.environ.get("BENCH_PYTHON", "").split(os.pathsep)
    found = [p for p in [*named, sys.executable, "/usr/bin/python3"] if p and os.path.exists(p)]
    return list(dict.fromkeys(found))


def find_peers(kind):
    """The scripts bench/peers/*_KIND.py, once for each version of their framework in a Python here."""
    peers = []
    for script in sorted(PEERS.glob(f"*_{kind}.py")):
        versions, sentence = set(), "no Python"
        for python in pythons():
            done = subprocess.run(
                [python, str(script), "--version"], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                words = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
                sentence = words[0] if words else f"exit status {done.returncode}"
                continue
            about = json.loads(done.stdout)
            if about["version"] not in versions:
                versions.add(about["version"])
                peers.append(Peer(python, script, about))
        if not versions:
            say(f"skipped: {script.name}: {sentence}")
    return peers


# ---- the machine ----


def results_name(about):
    """2026-11-21-amd-epyc-avx2: results of several machines lie side by side, and makers give several
    generations one name: what oneDNN finds there tells them apart."""
    words = "".join(c if c.isalnum() else " " for c in about["cpu"].lower()).split()
    left_out = {"r", "tm", "processor", "cpu", "with"}
    isa = about["onednn"].split()[1:2]
    return "-".join([about["date"].split()[0], *[w for w in words if w not in left_out][:6], *isa])


def first_line(arguments):
    try:
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


def commit():
    """What the sources are; a results file that was just written does not make them others."""
    changed = first_line(["git", "status", "--porcelain", "--untracked-files=no", "--", ".",
                          ":!bench/results"])
    return first_line(["git", "describe", "--always"]) + ("-dirty" if changed else "")


def word_of(path, key):
    try:
        for line in open(path, encoding="ascii", errors="replace"):
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def machine(tool):
    """What has to be known to read the numbers."""
    probe = tool.bench("--model", "lenet", "--batch", 1, "--infer", "--seconds", 0)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cpu": word_of("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory": word_of("/proc/meminfo", "MemTotal"),
        "system": word_of_release(),
        "compiler": first_line([os.environ.get("CC", "cc"), "--version"]),
        "onednn": probe.get("onednn", "unknown"),
        "commit": commit(),
        "load": " ".join(f"{x:.1f}" for x in os.getloadavg()),
    }


def word_of_release():
    try:
        for line in open("/etc/os-release", encoding="utf-8"):
            if line.startswith("PRETTY_NAME="):
                return line.split("=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return "unknown"
