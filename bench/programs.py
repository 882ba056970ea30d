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
        self.name, self.version = about["peer"], about["version"]
        self.formats = about["formats"]
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


def find_peers(kind):
    """The scripts bench/peers/*_KIND.py whose framework some Python here has."""
    pythons = [os.environ.get("BENCH_PYTHON"), sys.executable, "/usr/bin/python3"]
    peers = []
    for script in sorted(PEERS.glob(f"*_{kind}.py")):
        sentence = "no Python"
        for python in dict.fromkeys(p for p in pythons if p and os.path.exists(p)):
            done = subprocess.run(
                [python, str(script), "--version"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                peers.append(Peer(python, script, json.loads(done.stdout)))
                break
            sentence = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
            sentence = sentence[0] if sentence else f"exit status {done.returncode}"
        else:
            say(f"skipped: {script.name}: {sentence}")
    return peers


# ---- the machine ----


def first_line(arguments):
    try:
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


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
        "commit": first_line(["git", "describe", "--always", "--dirty"]),
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
