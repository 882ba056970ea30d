"""What a command finds, whom its report blames, and whether that is right."""
import json
import os
import signal
import subprocess

# Threads that wait asleep leave the processors to the other copies.
QUIET = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2", "BUILD": "build"}
NEUTRAL = ("upstream", "none", "whole", "crash", "hang")
MAX_LINES = 8


def environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ADJOINT_", "OMP_", "ONEDNN_"))}
    return {**kept, **QUIET}


def run(tree, words, seconds):
    """(exit status or None for no end, output); kills what it started, and no more."""
    with subprocess.Popen(words, cwd=tree, env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as child:
        try:
            output, _ = child.communicate(timeout=seconds)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return None, ""


def gradcheck_lines(report):
    for row in report["rows"]:
        if row["result"] == "FAIL":
            yield f"{row.get('fault', 'none')} {row['op']}: {row.get('blame', '')}"


def compare_lines(report):
    for config in report["configurations"]:
        reason = config["reason"]
        if config["result"] != "pass":
            if reason.startswith("memory: "):  # names a kernel
                yield reason.replace("memory:", "kernel", 1)
            else:
                yield reason if reason.startswith(("plan:", "pass ")) else f"whole: {reason}"
    for row in report["rows"]:
        if row["result"] != "pass":
            reason = row["reason"]
            yield reason if reason.startswith("pass ") else \
                f"{row['blame'] or 'none'} {row['op']} {row['backend']}: {reason}"
    if "also" in report:
        yield from compare_lines(report["also"])


def command(tree, words, seconds):
    """{"found", "lines", "trouble"} of adjoint with these words; trouble: it says nothing at all. What
    ends compare is asked for its name by --guard."""
    told = plain_command(tree, words, seconds)
    if words[0] == "compare" and told["lines"][:1] and told["lines"][0].startswith(("crash", "hang")):
        guarded = plain_command(tree, [*words, "--guard"], seconds)
        told["lines"] = told["lines"] + (guarded["lines"] if guarded["found"] else [])
    return told


def plain_command(tree, words, seconds):
    tool = words[0]
    options = ["--json", "-"] + (["--runs", "1", "--shrink", "0"] if tool == "compare" else [])
    status, output = run(tree, ["build/adjoint", *words, *options], seconds)
    if status is None:
        return {"found": True, "lines": [f"hang: no end in {seconds} s"]}
    if status < 0 or status >= 128:
        return {"found": True, "lines": [f"crash: status {status}"]}
    if status == 3:
        return {"found": False, "lines": [], "trouble": output.strip()[-300:]}
    if status != 1:
        return {"found": False, "lines": []}
    try:
        report = json.loads(output)
        lines = list(dict.fromkeys((gradcheck_lines if tool == "gradcheck" else compare_lines)(report)))
    except (ValueError, KeyError, TypeError):
        said = output.strip()[-200:]
        lines = [said[said.index("plan: "):] if "plan: " in said else "none: " + said]
    decisive = [line for line in lines if line.split()[0].rstrip(":") not in NEUTRAL]
    return {"found": True, "lines": (decisive + [x for x in lines if x not in decisive])[:MAX_LINES]}


def matches(line, expected):
    """The first word is the line's first, the others stand somewhere in it."""
    first, *others = expected.split()
    return line.split()[0].rstrip(":") == first and all(w in line for w in others)


def blame_of(lines, expected):
    """"right", "wrong", or "none said": everything that is said with decision must be expected."""
    decisive = [line for line in lines if line.split()[0].rstrip(":") not in NEUTRAL]
    if not decisive:
        return "none said"
    return "right" if all(any(matches(line, e) for e in expected) for line in decisive) else "wrong"


def unit_test(tree, name, seconds):
    status, _ = run(tree, [f"build/tests/{name}"], seconds)
    return status != 0
