#!/usr/bin/env python3
"""Plants faults, one at a time, and sees who finds them (ninja mutants): gradcheck, compare and the unit
tests that claim the file. The faults are the lists beside this file; mutant_list.py says how to read
them.

Works in copies of the tree under build/mutants/ and keeps what is found in results.json there: a run
that was stopped goes on, and after a change only what the change may affect is run again. Prints a table;
a run of all lists writes it to docs/internals/mutants.md as well. The exit status is 1 if a mutant cannot be planted or
built, or a command fails without a fault; that mutants survive is in the table.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import queue
import sys
import threading
import time

import mutant_list
import table
import trees
import verdict
from mutant_list import ROOT, TOOLS

LINES_OF_TROUBLE = 400  # characters


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--only", action="append", metavar="NAME",
                   help="this mutant, or all of this layer (a list's name); may be repeated")
    p.add_argument("--fresh", action="store_true", help="forgets what earlier runs found")
    p.add_argument("--copies", type=int, default=len(os.sched_getaffinity(0)),
                   help="of the tree, side by side; default: the number of processors")
    p.add_argument("--seconds", type=float, default=120, help="limit of a command or test; default: 120")
    p.add_argument("--build-seconds", type=float, default=1200, help="limit of a build; default: 1200")
    p.add_argument("--lists", type=pathlib.Path, default=mutant_list.HERE, help="another folder of lists")
    p.add_argument("--check", action="store_true",
                   help="runs nothing: is each list readable, and does each mutant fit the sources?")
    o = p.parse_args()
    if o.copies < 1:
        p.error(f"--copies is out of range (got {o.copies}, expected 1 or more)")
    return o


def select(mutants, only):
    """Those that are asked for; a name that is none is told."""
    names = {m.name for m in mutants} | {m.layer for m in mutants}
    for name in only or []:
        if name not in names:
            raise mutant_list.ListError(f"--only: there is no mutant and no layer {name}")
    return [m for m in mutants if not only or m.name in only or m.layer in only]


def state_of_tree():
    """Changes with every file that a result may depend on: not with lists and documents."""
    total = hashlib.sha256()
    for name in trees.sources():
        if name.startswith(("docs/", "tests/mutants/", "bench/", "package/")) or name.endswith(".md"):
            continue
        total.update(name.encode() + b"\0" + (ROOT / name).read_bytes() + b"\0")
    return total.hexdigest()[:16]


class Store:
    """Results by key, written after each."""

    def __init__(self, fresh, emulates_tiles):
        self.path, self.lock = trees.FOLDER / "results.json", threading.Lock()
        self.state, self.of = state_of_tree() + (" tiles emulated" if emulates_tiles else ""), {}
        if fresh or not self.path.exists():
            return
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except ValueError:
            return
        if kept.get("state") == self.state:
            self.of = kept["results"]

    def put(self, key, result):
        with self.lock:
            self.of[key] = result
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps({"state": self.state, "results": self.of}, indent=1), encoding="utf-8")
            new.replace(self.path)


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- without a fault ----

def control(o, sound, mutants, store):
    """Builds what is needed and runs each command once; returns those that fail."""
    tests = sorted({t for m in mutants for t in m.tests})
    say(f"the sound tree: build/adjoint and {len(tests)} unit tests")
    wrong = trees.ninja(sound.root, ["build/adjoint", *trees.test_targets(tests)], 4 * o.build_seconds)
    if wrong:
        raise SystemExit(f"mutants: the sound tree does not build:\n{wrong}")
    lines = dict.fromkeys(line for m in mutants for line in m.run)
    for line in lines:
        key = "control " + line
        if key not in store.of:
            store.put(key, verdict.command(sound.root, line.split(), o.seconds))
    for test in tests:
        key = "control test " + test
        if key not in store.of:
            store.put(key, {"found": verdict.unit_test(sound.root, test, o.seconds), "lines": []})
    return {line for line in [*lines, *("test " + t for t in tests)]
            if store.of["control " + line]["found"] or store.of["control " + line].get("trouble")}


# ---- with one ----

def first_finding(o, tree, commands, unsound):
    """Of a tool's commands, those left out that fail without a fault."""
    told = {"found": False, "lines": []}
    for words in commands:
        if " ".join(words) in unsound:
            continue
        told = {**verdict.command(tree, words, o.seconds), "command": " ".join(words)}
        if told["found"] or told.get("trouble"):
            break
    return told


def try_mutant(o, copy, m, unsound):
    begun = time.monotonic()
    try:
        planted = copy.plant(m)
    except (mutant_list.ListError, OSError) as e:
        return {"trouble": f"does not apply: {e}"}
    try:
        wrong = trees.ninja(copy.root, ["build/adjoint", *trees.test_targets(m.tests)], o.build_seconds)
        if wrong:
            return {"trouble": "does not build: " + wrong[-LINES_OF_TROUBLE:]}
        result = {"built": round(time.monotonic() - begun, 1)}
        for tool in TOOLS:
            result[tool] = first_finding(o, copy.root, m.commands(tool), unsound)
            if result[tool].get("trouble"):
                result["trouble"] = f"{tool} refuses: {result[tool]['trouble']}"
        failed = [t for t in m.tests
                  if "test " + t not in unsound and verdict.unit_test(copy.root, t, o.seconds)]
        result["tests"] = {"found": bool(failed), "failed": failed}
        said = [verdict.blame_of(result[t]["lines"], m.blame) for t in TOOLS if result[t]["found"]]
        result["blame"] = next((s for s in said if s != "right"), "right") if said else ""
        result["seconds"] = round(time.monotonic() - begun, 1)
        return result
    finally:
        copy.undo(planted)


def summary_of(result):
    if "trouble" in result:
        return result["trouble"].splitlines()[0]
    found = [t for t in (*TOOLS, "tests") if result[t]["found"]]
    return f"{', '.join(found) or 'SURVIVED'}; blame {result['blame'] or '-'}; {result['seconds']} s"


def run_all(o, sound, mutants, store, unsound):
    waiting = [m for m in mutants if m.key() not in store.of]
    free, done = queue.SimpleQueue(), []
    if not waiting:
        return
    for i in range(min(o.copies, len(waiting))):
        free.put(trees.Copy(i, sound))

    def work(m):
        copy = free.get()
        try:
            result = try_mutant(o, copy, m, unsound)
        finally:
            free.put(copy)
        store.put(m.key(), result)
        done.append(m)
        say(f"[{len(done)}/{len(waiting)}] {m.layer}/{m.name}: {summary_of(result)}")

    with concurrent.futures.ThreadPoolExecutor(o.copies) as pool:
        tasks = [pool.submit(work, m) for m in waiting]
        try:
            for task in tasks:
                task.result()
        except (KeyboardInterrupt, trees.Interrupted):
            pool.shutdown(cancel_futures=True)
            raise SystemExit("mutants: stopped; the next run goes on from here") from None


# ---- what is told ----

def report(mutants, store, unsound):
    results = {m.name: store.of[m.key()] for m in mutants if m.key() in store.of}
    lines = table.details(mutants, results)
    lines += [f"fails without a fault, left out: {line}" for line in sorted(unsound)]
    text = table.markdown(mutants, results) + "\n\n"
    text += "".join(f"- {sentence}\n" for sentence, _ in table.goals(mutants, results))
    return text, lines, any("trouble" in r for r in results.values()) or bool(unsound)


def cpu_line(word):
    """What /proc/cpuinfo says of the first processor; nothing where there is no such file."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(word)), "")


TILES = {"amx_tile", "amx_bf16"}


def can_emulate_tiles(flags):
    """Whether tests/emulated_tiles.h gives this CPU what it lacks."""
    return "avx512_bf16" in flags and not flags.issuperset(TILES)


def write_document(text, lines, left_out, emulates_tiles):
    head = ("# Mutation testing\n\n"
            "`ninja mutants` plants one fault at a time in a copy of the tree. It then runs `gradcheck`, `compare` and the\n"
            "unit tests of the changed file, and notes which of them fail and what they blame ([testing](testing.md)).\n"
            "tests/mutants/run.py wrote this page after its last whole run.\n" +
            (f"{left_out} more are for instructions that this CPU lacks, and were not planted.\n"
             if left_out else "") +
            ("AMX's tiles were emulated (tests/emulated_tiles.h).\n" if emulates_tiles else "") + "\n")
    body = text + ("\n" + "".join(f"- {' '.join(line.split())}\n" for line in lines) if lines else "")
    (ROOT / "docs/internals/mutants.md").write_text(head + body, encoding="utf-8")


def main():
    o = parse()
    try:
        every = mutant_list.read_lists(o.lists)
        mutants = select(every, o.only)
    except (mutant_list.ListError, OSError) as e:
        print(f"mutants: {e}")
        return 3
    unfit = mutant_list.misfits(mutants)
    if o.check:
        for m, wrong in unfit:
            print(f"{m.layer}.txt: {m.name} does not fit: {wrong}")
        print(f"{len(mutants)} mutants, {len({m.name for m, _ in unfit})} do not fit")
        return 1 if unfit else 0
    for m, wrong in unfit:
        say(f"{m.layer}/{m.name} does not fit: {wrong}")
    flags = set(cpu_line("flags").split())
    emulates_tiles = can_emulate_tiles(flags) and any(TILES & set(m.needs) for m in every)
    if emulates_tiles:
        flags |= TILES
    for m in mutants:
        if not flags.issuperset(m.needs):
            say(f"{m.layer}/{m.name} left out: this CPU lacks {' '.join(set(m.needs) - flags)}")
    left_out = sum(not flags.issuperset(m.needs) for m in every)
    every = [m for m in every if flags.issuperset(m.needs)]
    mutants = [m for m in mutants if flags.issuperset(m.needs)]
    store, sound = Store(o.fresh, emulates_tiles), trees.Sound(emulates_tiles)
    sound.update()
    missing = {m.name for m, wrong in unfit if "there is no tests/" in wrong}
    unsound = control(o, sound, [m for m in mutants if m.name not in missing], store)
    run_all(o, sound, mutants, store, unsound)
    text, lines, trouble = report(mutants, store, unsound)
    print(text + "\n" + "\n".join(lines))
    if len(mutants) == len(every) and o.lists == mutant_list.HERE:
        write_document(text, lines, left_out, emulates_tiles)
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
