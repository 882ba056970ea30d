#!/usr/bin/env python3
"""gradients.py PROGRAM [FILTER] - the gradients of the operators of ONNX's node tests: compared with differences at the
tests' own inputs, and checked by adj_gradcheck at random ones (tests/onnx/run_cases.c). Inputs that ONNX calls not
differentiable are left out, and operators that have no other."""
import collections
import pathlib
import re
import sys
import tempfile

import onnx

from nodes import run_cases, write_cases

# An operator, what fails there, and why that is no fault.
EXPECTED = {
    "QuantizeLinear": ("slope gradcheck", "the gradient passes through the rounding, by definition"),
    "Clip": ("gradcheck", "random limits lie among the values: the differences do not settle"),
}


def differentiable(case):
    """Names of the inputs that are."""
    node = case.model.graph.node[0]
    version = next(o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx"))
    formal = onnx.defs.get_schema(node.op_type, version).inputs
    never = onnx.defs.OpSchema.DifferentiationCategory.NonDifferentiable
    return {name for i, name in enumerate(node.input)
            if formal[min(i, len(formal) - 1)].differentiation_category != never}


def main():
    program, pattern = sys.argv[1], re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    table, remarks, failed = collections.defaultdict(collections.Counter), [], 0
    with tempfile.TemporaryDirectory() as folder:
        cases, _ = write_cases(pathlib.Path(folder), pattern)
        for (op, case, *_), answer in zip(cases, run_cases(program, cases, "--gradients")):
            words = answer.split()
            names = differentiable(case)
            inputs = [w.rsplit(":", 4) for w in words[4:] if words[0] == "ok" and w.rsplit(":", 4)[0] in names]
            if words[0] == "failed" or (words[0] == "ok" and not inputs):
                continue
            t, wrong = table[op], sum(int(i[3]) for i in inputs)
            t["cases"] += 1
            t["elements"] += sum(int(i[1]) for i in inputs)
            t["kinks"] += sum(int(i[2]) for i in inputs)
            t["worst"] = max([t["worst"], *(float(i[4]) for i in inputs)])
            problems = ["slope"] * (wrong > 0 or words[0] != "ok") + ["gradcheck"] * (words[3:4] != ["PASS"])
            t["pass"] += not problems
            if problems:
                remarks.append((op, case.name, answer[:200]))
                failed += any(p not in EXPECTED.get(op, ("", ""))[0] for p in problems)
    for op, t in sorted(table.items()):
        print(f"{op:28} {t['pass']:4} of {t['cases']:4} pass, {t['elements']:6} elements, {t['kinks']:5} of these at kinks, "
              f"worst {t['worst']:.1e}" + (f"  ({EXPECTED[op][1]})" if op in EXPECTED else ""))
    for r in remarks:
        print(*r, sep=" | ")
    print(sum(t["pass"] for t in table.values()), "of", sum(t["cases"] for t in table.values()), "pass;",
          sum(t["elements"] for t in table.values()), "elements")
    sys.exit(failed > 0)


main()
