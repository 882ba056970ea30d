#!/usr/bin/env python3
"""onnx_seeds.py FOLDER - seeds of fuzz_onnx from the node tests that PyPI's onnx carries: of each operator that is read,
a model for each set of attributes and operands. All operands but the first become initializers, so that shapes
are known. Then: tests/fuzz/seeds.sh add onnx FOLDER/*"""
import pathlib
import re
import sys

import onnx
from onnx.backend.test.case.node import collect_testcases

MAX_BYTES = 1024  # a longer one costs the fuzzer more than it shows


def main():
    folder, seen = pathlib.Path(sys.argv[1]), set()
    read = set(re.findall(r'\.name = "(\w+)"', pathlib.Path("onnx/table.c").read_text()))
    for case in collect_testcases(None):
        model = onnx.ModelProto.FromString(case.model.SerializeToString())
        graph, values = model.graph, case.data_sets[0][0]
        if len(graph.node) != 1 or graph.node[0].op_type not in read:
            continue
        node = graph.node[0]
        kind = (node.op_type, model.opset_import[0].version < 7, tuple(map(bool, node.input)), len(node.output),
                *sorted((a.name, a.s) for a in node.attribute))
        try:
            known = [v if isinstance(v, onnx.TensorProto) else onnx.numpy_helper.from_array(v) for v in values[1:]]
        except (AttributeError, TypeError, ValueError):  # sequences, optional values
            continue
        for t, info in zip(known, graph.input[1:]):
            t.name = info.name
        graph.initializer.extend(known)
        del graph.input[1:]
        data = model.SerializeToString()
        if kind not in seen and len(data) <= MAX_BYTES:
            seen.add(kind)
            (folder / f"{case.name.removeprefix('test_')}.onnx").write_bytes(data)


main()
