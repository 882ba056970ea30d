"""The lists of mutants: reading them, checking them against the sources, making a fault.

A list is a text file, a layer of the program; its blocks are faults, a "key value" a line:

  mutant NAME         one word, unique among all lists
  file FILE           from the top of the sources
  after TEXT          if old stands in more places: old is looked for behind this, which stands once
  old TEXT            a part of a line; stands once in the file, or once behind "after" on a line
  new TEXT            in its place
  why TEXT            what is wrong then, and for which inputs
  within TOOLS        gradcheck, compare, or both, if it is within their reach; else tests
  blame WORD MORE...  what a report should say: rule, kernel, reference, plan, memory, pass or graph, and words
                      that stand in the same sentence; may be repeated, any is right
  run TOOL OPTIONS    a command of adjoint that should find it; may be repeated
  tests NAME...       unit tests that claim the file, such as ops/test_conv2d
  needs FLAG...       of the CPU, as /proc/cpuinfo has them: on another the file's code is not reached

Empty lines separate blocks; a line that begins with # is a comment. A block that begins with "file" is a group:
its file, within, blame and tests are those of the mutants below, up to the next group, unless a mutant has its
own. A block that begins with "within" or "blame" gives these to the whole list. A mutant with a file of its own
is in no group, and what only unit tests find has no blame.
"""
import dataclasses
import hashlib
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS = ("gradcheck", "compare")
ONCE = ("mutant", "file", "after", "old", "new", "why", "within", "tests", "needs")
MANY = ("blame", "run")
SHARED = ("file", "within", "blame", "tests")
NEEDED = ("file", "old", "new", "why", "within", "tests")
BLAMES = ("rule", "kernel", "reference", "plan", "memory", "pass", "graph")


class ListError(Exception):
    """A list that makes no sense: which line, and what is wrong with it."""


@dataclasses.dataclass
class Mutant:
    layer: str
    name: str
    file: str
    old: str
    new: str
    why: str
    within: list
    tests: list
    after: str = ""
    blame: list = dataclasses.field(default_factory=list)
    run: list = dataclasses.field(default_factory=list)
    needs: list = dataclasses.field(default_factory=list)

    def key(self):
        """What its result depends on, the sources left out."""
        text = repr(sorted(i for i in dataclasses.asdict(self).items() if i[0] != "needs"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def commands(self, tool):
        """The words of each of its commands that are this tool's."""
        return [words for words in (line.split() for line in self.run) if words[0] == tool]

    def find(self, text):
        """Where the fault goes: (offset, "") or (-1, what is wrong)."""
        start = 0
        if self.after:
            if text.count(self.after) != 1:
                return -1, f'"after" stands {text.count(self.after)} times in {self.file}, expected once'
            start = text.index(self.after) + len(self.after)
        elif text.count(self.old) != 1:
            return -1, f'"old" stands {text.count(self.old)} times in {self.file}, expected once'
        at = text.find(self.old, start)
        if at < 0:
            return -1, f'"old" does not stand behind "after" in {self.file}'
        return at, ""

    def plant(self, text):
        """The text with the fault; ListError if there is no one place for it."""
        at, wrong = self.find(text)
        if wrong:
            raise ListError(wrong)
        return text[:at] + self.new + text[at + len(self.old):]


def check_block(block, where):
    """A block that has what it needs, and says nothing that is unknown."""
    for key in NEEDED:
        if key not in block and key != "new":
            raise ListError(f"{where}: {block['mutant']} has no {key}")
    for tool in block["within"].split():
        if tool not in (*TOOLS, "tests"):
            raise ListError(f"{where}: within: unknown tool (got {tool}, expected gradcheck, compare or tests)")
        if tool in TOOLS and not any(line.split()[0] == tool for line in block.get("run", [])):
            raise ListError(f"{where}: {block['mutant']} is within reach of {tool}, but runs none")
    for line in block.get("run", []):
        if line.split()[0] not in TOOLS:
            raise ListError(f"{where}: run: unknown tool (got {line.split()[0]}, expected gradcheck or compare)")
    for line in block.get("blame", []):
        if line.split()[0] not in BLAMES:
            raise ListError(f"{where}: blame: unknown word (got {line.split()[0]}, expected one of "
                            f"{', '.join(BLAMES)})")
    if block["within"] != "tests" and "blame" not in block:
        raise ListError(f"{where}: {block['mutant']} does not say what is to blame")
    if block["old"] == block.get("new", ""):
        raise ListError(f"{where}: {block['mutant']} changes nothing")


def to_mutant(layer, block, where):
    check_block(block, where)
    return Mutant(layer=layer, name=block["mutant"], file=block["file"], old=block["old"],
                  new=block.get("new", ""), why=block["why"], within=block["within"].split(),
                  tests=block["tests"].split(), after=block.get("after", ""),
                  blame=block.get("blame", []), run=block.get("run", []),
                  needs=block.get("needs", "").split())


def add_line(block, key, value, where):
    """One more line of a block."""
    if key not in ONCE + MANY:
        raise ListError(f"{where}: unknown key (got {key})")
    is_first = not block
    fits = key != "mutant" if "mutant" in block else key in SHARED or is_first and key == "mutant"
    if not fits:
        raise ListError(f"{where}: a block begins with its mutant's name (got {key})")
    if not value and key != "new":
        raise ListError(f"{where}: {key} is empty")
    if key in MANY:
        block.setdefault(key, []).append(value)
    elif key in block:
        raise ListError(f"{where}: {key} is given twice")
    else:
        block[key] = value


def read_list(path):
    mutants, block, begun, of_list, of_group = [], {}, 0, {}, {}
    lines = path.read_text(encoding="utf-8").splitlines() + [""]
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if line.startswith("#"):
            continue
        if line:
            key, _, value = line.partition(" ")
            begun = begun if block else number
            add_line(block, key, value.strip(), f"{path.name}:{number}")
            continue
        if "mutant" in block:
            whole = {**of_list, **({} if "file" in block else of_group), **block}
            if whole.get("within") == "tests" and "blame" not in block:
                whole.pop("blame", None)
            mutants.append(to_mutant(path.stem, whole, f"{path.name}:{begun}"))
        elif "file" in block:
            of_group = block
        elif block:
            of_list, of_group = block, {}
        block = {}
    return mutants


def read_lists(folder=HERE):
    """All mutants, by layer and in their order."""
    mutants, seen = [], set()
    for path in sorted(folder.glob("*.txt")):
        for m in read_list(path):
            if m.name in seen:
                raise ListError(f"{path.name}: {m.name} is there twice")
            seen.add(m.name)
            mutants.append(m)
    if not mutants:
        raise ListError(f"no list in {folder}")
    return mutants


def misfits(mutants, root=ROOT):
    """Those that do not fit the sources any more: (mutant, what is wrong)."""
    texts, found = {}, []
    for m in mutants:
        path = root / m.file
        if m.file not in texts:
            texts[m.file] = path.read_text(encoding="utf-8") if path.is_file() else None
        if texts[m.file] is None:
            found.append((m, f"there is no {m.file}"))
            continue
        _, wrong = m.find(texts[m.file])
        if wrong:
            found.append((m, wrong))
        for test in m.tests:
            if not (root / "tests" / f"{test}.c").is_file():
                found.append((m, f"there is no tests/{test}.c"))
    return found
