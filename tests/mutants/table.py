"""The results of all mutants as a table, and what is wrong with them."""
from mutant_list import TOOLS

TITLES = {"rules": "gradient rules", "naive": "naive kernels", "onednn": "oneDNN wrapper",
          "direct": "direct kernels", "fused": "fused loops and groups", "passes": "passes",
          "exec": "memory, plan, layouts", "onnx": "ONNX files", "optimizers": "optimizers, layers, losses",
          "half": "half types", "check": "formulas of the checkers"}


def reached(m, results, tool):
    return tool in m.within and "trouble" not in results[m.name]


def found_by(result, tool):
    return result.get(tool, {}).get("found", False)


def by_tools(result):
    return any(found_by(result, t) for t in TOOLS)


def survives(result):
    return "trouble" not in result and not by_tools(result) and not found_by(result, "tests")


def share(found, of):
    return f"{found} of {of}" if of else "-"


class Counts:
    """Of some mutants."""

    def __init__(self, mutants, results):
        ran = [m for m in mutants if m.name in results]
        self.n = len(mutants)
        self.trouble = len(mutants) - len([m for m in ran if "trouble" not in results[m.name]])
        self.tool = {}
        for tool in TOOLS:
            reach = [m for m in ran if reached(m, results, tool)]
            self.tool[tool] = (sum(found_by(results[m.name], tool) for m in reach), len(reach))
        reach = [m for m in ran if any(reached(m, results, t) for t in TOOLS)]
        self.either = (sum(by_tools(results[m.name]) for m in reach), len(reach))
        self.tests = (sum(found_by(results[m.name], "tests") for m in ran), self.n - self.trouble)
        self.survived = sum(survives(results[m.name]) for m in ran)
        blamed = [m for m in ran if by_tools(results[m.name])]
        self.right = (sum(results[m.name].get("blame") == "right" for m in blamed), len(blamed))

    def row(self, title):
        return (f"| {title} | {self.n} | {share(*self.tool['gradcheck'])} | "
                f"{share(*self.tool['compare'])} | {share(*self.either)} | {share(*self.tests)} | "
                f"{self.survived} | {share(*self.right)} |")


def markdown(mutants, results):
    lines = ["| layer | mutants | gradcheck, of those in reach | compare, of those in reach | one of them | "
             "unit tests | survived | blame right, of found by the two |",
             "|---|---|---|---|---|---|---|---|"]
    for layer in dict.fromkeys(m.layer for m in mutants):
        part = [m for m in mutants if m.layer == layer]
        lines.append(Counts(part, results).row(TITLES.get(layer, layer)))
    lines.append(Counts(mutants, results).row("all"))
    return "\n".join(lines)


def percent(found, of):
    return f"{100 * found / of:.0f} %" if of else "none"


def first_error(text):
    """The compiler's first error in a build's output, else the output's first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return (errors or lines)[0]


def details(mutants, results):
    """What deserves a look, a line each."""
    lines = []
    ran = [m for m in mutants if m.name in results]
    for m in ran:
        if "trouble" in results[m.name]:
            lines.append(f"cannot be planted: {m.name}: {first_error(results[m.name]['trouble'])}")
    for m in ran:
        if survives(results[m.name]):
            lines.append(f"survived: {m.name} ({m.file}): {m.why}")
    for m in ran:
        missed = [t for t in TOOLS if reached(m, results, t) and not found_by(results[m.name], t)]
        if missed and not survives(results[m.name]):
            lines.append(f"missed by {' and '.join(missed)}: {m.name} ({m.file}): {m.why}")
    for m in ran:
        result = results[m.name]
        if by_tools(result) and result.get("blame") != "right":
            said = dict.fromkeys(line.partition(":")[0] for t in TOOLS for line in result.get(t, {}).get("lines", []))
            lines.append(f"blame {result.get('blame')}: {m.name}: expected {' or '.join(m.blame) or 'nothing'}, "
                         f"got {', '.join(said)}")
    return lines


def goals(mutants, results):
    """(sentence, is reached) of each."""
    c = Counts(mutants, results)
    return [(f"{c.survived} survive all three (goal: none)", c.survived == 0),
            (f"gradcheck or compare find {percent(*c.either)} of those within their reach (goal: 95 %)",
             c.either[0] >= 0.95 * c.either[1]),
            (f"blame is right in {percent(*c.right)} of what they find (goal: 95 %)",
             c.right[0] >= 0.95 * c.right[1])]
