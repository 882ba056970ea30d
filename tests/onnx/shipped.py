#!/usr/bin/env python3
"""shipped.py PROGRAM [FILTER] - the models that PyPI's onnx carries with their outputs, run by
tests/onnx/run_cases.c. The light models have equal weights, so that most outputs are 0.001: they run once more with
random weights, beside ONNX Runtime."""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests

from tensors import is_same, read_tensors, write_tensors

REFUSED = re.compile("strnorm|gradient_of")  # strings; the operator Gradient
KINDS = ["pytorch-operator", "pytorch-converted", "simple"]


def array_of(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def input_names(model):
    initial = {i.name for i in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name not in initial]


def stored_cases(pattern):
    """Yields (kind, name, model, inputs, outputs, rtol, atol)"""
    for kind in KINDS:
        for case in sorted(load_model_tests(kind=kind), key=lambda c: c.name):
            if not pattern.search(case.name):
                continue
            model = onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
            data = pathlib.Path(case.model_dir) / "test_data_set_0"
            inputs = {name: array_of(data / f"input_{i}.pb") for i, name in enumerate(input_names(model))}
            outputs = [array_of(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
            yield kind, case.name, model, inputs, outputs, case.rtol, case.atol


def ramp(model):
    """The input of onnx's runner for models without stored ones."""
    shape = [d.dim_value for d in next(i for i in model.graph.input if i.name == input_names(model)[0])
             .type.tensor_type.shape.dim]
    n = np.prod(shape)
    return {input_names(model)[0]: (np.arange(n).reshape(shape) / n).astype(np.float32)}


def randomize(model):
    """Random weights in place of equal ones, and the values before a softmax as outputs."""
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    draw = np.random.default_rng(1)
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]]
        deviation = np.sqrt(2 / np.prod(shape[1:]))
        a = draw.uniform(0.5, 1.5, shape) if len(shape) == 1 else deviation * draw.standard_normal(shape, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(a.astype(np.float32), node.output[0]))
    if kept[-1].op_type == "Softmax":
        model.graph.output[0].name = kept.pop().input[0]
    del model.graph.node[:]
    model.graph.node.extend(kept)


def light_cases(pattern):
    for path in sorted((pathlib.Path(DATA_DIR) / "light").glob("*.onnx")):
        if not pattern.search(path.stem):
            continue
        model = onnx.load(path)
        inputs = ramp(model)
        yield "light", path.stem, model, inputs, [array_of(path.with_name(path.stem + "_output_0.pb"))], 1e-3, 1e-7
        randomize(model)
        onnxruntime.set_default_logger_severity(3)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        outputs = session.run(None, inputs)
        del session
        yield "light, random", path.stem, model, inputs, outputs, 0, 1e-4 * float(np.abs(outputs[0]).max())


def main():
    program, pattern = sys.argv[1], re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    table, failures = collections.defaultdict(collections.Counter), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = [folder / "net.onnx", folder / "in", folder / "out"]
        for cases in (stored_cases(pattern), light_cases(pattern)):
            for kind, name, model, inputs, outputs, rtol, atol in cases:
                files[0].write_bytes(model.SerializeToString())
                answer = "failed: values that have no numbers here"
                if write_tensors(files[1], inputs):
                    said = subprocess.run([program], input=" ".join(map(str, files)), capture_output=True, text=True,
                                          check=False)
                    answer = said.stdout.strip() or f"no answer: {said.stderr[-300:]} rc {said.returncode}"
                if answer.startswith("ok"):
                    got = read_tensors(files[2])
                    wrong = [w for k, want in enumerate(outputs) if (w := is_same(got[str(k)], want, rtol, atol))]
                    answer = "wrong: " + wrong[0] if wrong else answer
                table[kind]["pass" if answer.startswith("ok") else "fail"] += 1
                if not answer.startswith("ok"):
                    failures.append((kind, name, answer[:220]))
    for kind, row in table.items():
        print(f"{kind:28} {row['pass']:4} pass {row['fail']:4} fail")
    for f in failures:
        print(*f, sep=" | ")
    sys.exit(any(not answer.startswith("failed") or not REFUSED.search(name) for _, name, answer in failures))


main()
