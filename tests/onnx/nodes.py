#!/usr/bin/env python3
"""nodes.py PROGRAM [FILTER] - the node tests that PyPI's onnx carries, run by tests/onnx/run_cases.c: how many
of each operator pass. Outputs are compared with the tolerances of onnx's own runner."""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

from tensors import has_numbers, is_same, merged, read_tensors, write_tensors

OPERATORS = set("""Conv ConvTranspose BatchNormalization GroupNormalization LayerNormalization
InstanceNormalization LRN Relu LeakyRelu ThresholdedRelu PRelu Elu Celu Selu Clip Sigmoid HardSigmoid HardSwish
Swish Tanh Softplus Softsign Mish Gelu Erf Softmax LogSoftmax MaxPool AveragePool GlobalAveragePool GlobalMaxPool
LpPool Gemm MatMul Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Reciprocal Min Max Sum Mean ReduceSum ReduceMean
ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp ArgMax Concat Split Slice Gather Reshape
Flatten Squeeze Unsqueeze Transpose Pad Resize Upsample DepthToSpace SpaceToDepth Dropout Identity Constant
ConstantOfShape Shape Size Cast Expand Tile Where Equal Greater GreaterOrEqual Less LessOrEqual And Or Not Xor
SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss QuantizeLinear DequantizeLinear""".split())


def array(a):
    """A tensor in a message, which has the types that NumPy lacks, as an array."""
    return onnx.numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else a


def is_dropped(got, inputs):
    """What Dropout in training may give: scaled elements and zeros, about as many as the ratio says, and the mask of
    these."""
    x, ratio, y = inputs[0], float(inputs[1]), got["0"]
    kept = y != 0
    if not np.allclose(y, kept * x / (1 - ratio), rtol=1e-5):
        return "an element is neither 0 nor scaled"
    if abs(kept.mean() - (1 - ratio)) > 4 * np.sqrt(ratio * (1 - ratio) / kept.size):
        return f"{kept.mean()} of the elements are kept, expected {1 - ratio}"
    return "the mask is another one" if "1" in got and (got["1"] != kept).any() else ""


def write_cases(folder, pattern):
    """(operator, case, path without suffix, inputs, outputs) of each node test of an operator of the list, its model
    and inputs written; and the number of those by operator whose values cannot be."""
    cases, refused = [], collections.Counter()
    for case in collect_testcases(None):
        graph = case.model.graph
        ops = {n.op_type for n in graph.node}
        if len(ops) != 1 or not ops <= OPERATORS or not pattern.search(case.name):
            continue
        names = [i.name for i in graph.input]
        inputs, outputs = ([array(a) for a in part] for part in case.data_sets[0])
        stem = folder / case.name
        if not all(map(has_numbers, outputs)) or not write_tensors(stem.with_suffix(".in"), dict(zip(names, inputs))):
            refused[next(iter(ops))] += 1
            continue
        stem.with_suffix(".onnx").write_bytes(case.model.SerializeToString())
        cases.append((next(iter(ops)), case, stem, inputs, outputs))
    return cases, refused


def run_cases(program, cases, *options):
    """What the program answers to each case."""
    lines = "".join(f"{s.with_suffix('.onnx')} {s.with_suffix('.in')} {s.with_suffix('.out')}\n" for _, _, s, _, _ in cases)
    said = subprocess.run([program, *options], input=lines, capture_output=True, text=True, check=False)
    answers = said.stdout.splitlines()
    return answers + [f"no answer: {said.stderr[-300:]} rc {said.returncode}"] * (len(cases) - len(answers))


def main():
    program, pattern = sys.argv[1], re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    cases, refused = write_cases(pathlib.Path(tempfile.mkdtemp()), pattern)
    table, failures = collections.defaultdict(collections.Counter), []
    for (op, case, stem, inputs, outputs), answer in zip(cases, run_cases(program, cases)):
        if answer.startswith("ok"):
            got = read_tensors(stem.with_suffix(".out"))
            wrong = [w for k, want in enumerate(outputs)
                     if (w := is_same(got[str(k)], merged(np.asarray(want)), case.rtol, case.atol))]
            if op == "Dropout" and answer.startswith("ok 3"):  # the mask is random
                wrong = [w for w in [is_dropped(got, inputs)] if w]
            answer = "wrong: " + wrong[0] if wrong else answer
        table[op]["pass" if answer.startswith("ok") else "fail"] += 1
        if not answer.startswith("ok"):
            types = sorted({str(getattr(a, "dtype", type(a).__name__)) for a in inputs})
            failures.append((op, case.name, ",".join(types), answer[:220]))
    for op in sorted(table):
        print(f"{op:28} {table[op]['pass']:4} pass {table[op]['fail']:4} fail {refused[op]:4} of types that have no numbers here")
    for f in failures:
        print(*f, sep=" | ")
    print(sum(t["pass"] for t in table.values()), "of", len(cases), "pass;", sum(refused.values()), "not tried")


if __name__ == "__main__":
    main()
