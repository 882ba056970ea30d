"""Copies of the sources in which faults are planted, each with its own warm build.

The sound copy is built from a copy of the objects of build/, and tells what is true without a fault. A
worker's copy is a copy of that. After a fault all that its build has changed becomes the sound copy's
again, with the time that it has: so ninja sees nothing to do, and nothing is compiled twice.
"""
import os
import pathlib
import shutil
import subprocess

from mutant_list import ROOT

FOLDER = ROOT / "build" / "mutants"
TESTS = pathlib.Path("build", "tests")
OBJECTS = (".dd", ".o", ".a", ".d")
TILES = "\ntiles ="  # a variable of build.ninja


def sources():
    """All files of the tree that git knows or would take up; without git all but build/."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                          capture_output=True, check=False)
    names = [n for n in done.stdout.decode().split("\0") if n]
    if done.returncode != 0 or not names:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                 if p.is_file() and p.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return sorted(n for n in names if (ROOT / n).is_file())


class Interrupted(Exception):
    """Somebody has stopped a build, which says nothing about it."""


def ninja(tree, targets, seconds):
    """"", or the end of what the failed build said."""
    try:
        done = subprocess.run(["ninja", "-C", str(tree), *targets], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds,
                              check=False)
    except subprocess.TimeoutExpired:
        return f"the build did not end in {seconds} s"
    if done.returncode != 0 and "interrupted by user" in done.stdout:
        raise Interrupted
    return "" if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-12:])


def test_targets(tests):
    return [str(TESTS / t) for t in tests]


def is_program_of_tests(name):
    """Large, and linked anew whenever it is needed."""
    return name.parts[:2] == TESTS.parts and name.suffix not in OBJECTS


class Sound:
    """The copy without a fault; with AMX's tiles emulated, if asked for."""

    def __init__(self, emulates_tiles):
        self.root, self.emulates_tiles = FOLDER / "sound", emulates_tiles

    def _is_as(self, copy, source):
        return copy.is_file() and copy.read_bytes() == self._content(source)

    def _content(self, source):
        content = source.read_bytes()
        if not self.emulates_tiles or source != ROOT / "build.ninja":
            return content
        emulated = content.replace(TILES.encode(), (TILES + " -include tests/emulated_tiles.h").encode())
        if emulated == content:
            raise SystemExit("mutants: build.ninja has no variable tiles")
        return emulated

    def update(self):
        """The sources as they are now. What is new in them has the time of now, else objects would seem
        to be younger."""
        is_new = not (self.root / "build.ninja").exists()
        names = sources()
        for name in names:
            source, copy = ROOT / name, self.root / name
            if self._is_as(copy, source):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copy2 if is_new else shutil.copy)(source, copy)
            if not self._is_as(copy, source):
                copy.write_bytes(self._content(source))
        known = set(names)
        for folder, folders, files in os.walk(self.root):
            at = pathlib.Path(folder).relative_to(self.root)
            folders[:] = [f for f in folders if (at / f).parts[0] not in ("build", ".git")]
            for file in files:
                if str(at / file) not in known and not file.startswith(".ninja"):
                    (self.root / at / file).unlink()
        if is_new:
            self._take_objects()

    def _take_objects(self):
        """Those of the release build, with their times, and what ninja knows of them."""
        build = ROOT / "build"
        for path in build.rglob("*"):
            name = path.relative_to(ROOT)
            if name.parts[1] in ("mutants", "asan", "tsan", "clang", "fuzz", "aarch64", "small_serial"):
                continue
            if path.is_file() and (path.suffix in OBJECTS or name.name in
                                   (".ninja_log", ".ninja_deps", "adjoint", "onednn")):
                copy = self.root / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)


class Copy:
    """A worker's copy."""

    def __init__(self, number, sound):
        self.root, self.sound = FOLDER / f"copy{number}", sound.root
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.sound, self.root, symlinks=True, ignore=self._is_left_out)

    def _is_left_out(self, folder, names):
        at = pathlib.Path(folder).relative_to(self.sound)
        return [n for n in names
                if (pathlib.Path(folder) / n).is_file() and is_program_of_tests(at / n)]

    def plant(self, mutant):
        """The fault in its file; returns what undo needs."""
        path = self.root / mutant.file
        before = path.stat()
        text = path.read_text(encoding="utf-8")
        path.write_text(mutant.plant(text), encoding="utf-8")
        return path, text, before.st_atime_ns, before.st_mtime_ns

    def undo(self, planted):
        path, text, accessed, modified = planted
        begun = path.stat().st_mtime_ns
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(accessed, modified))
        for folder, _, files in os.walk(self.root / "build"):
            for file in files:
                self._undo_output(pathlib.Path(folder) / file, begun)

    def _undo_output(self, path, begun):
        name, now = path.relative_to(self.root), path.stat()
        if now.st_mtime_ns < begun or name.name.startswith(".ninja"):
            return
        sound = self.sound / name
        if is_program_of_tests(name) or not sound.is_file():
            path.unlink()
            return
        shutil.copyfile(sound, path)
        os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))
