#!/usr/bin/env python3
"""saved.py PROGRAM [FILE.onnx ...] - what adj_onnx_save writes of the built-in models in both formats, and of the given
files after importing them, with batch norms as themselves and folded: checked by onnx.checker with shape inference, and
run by ONNX Runtime."""
import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from tensors import read_tensors

MODELS = ["lenet", "lenet5", "resnet8", "resnet20", "mobilenet_v1", "vgg6", "ds_cnn"]


def main():
    folder, failed = pathlib.Path(tempfile.mkdtemp()), 0
    cases = [(m, f) for m in MODELS for f in ("nhwc", "nchw")] + [(f, "nchw") for f in sys.argv[2:]]
    for model, form, fold in [(*c, fold) for c in cases for fold in ([], ["fold"])]:
        said = subprocess.run([sys.argv[1], model, form, folder / "net.onnx", folder / "values", *fold],
                              capture_output=True, text=True, check=False)
        name = f"{pathlib.Path(model).stem:14} {form} {fold[0] if fold else '':4}"
        if said.returncode:
            print(name, "FAILED", said.stdout.strip(), said.stderr.strip()[-200:])
            failed += 1
            continue
        try:
            onnx.checker.check_model(str(folder / "net.onnx"), full_check=True)
            net, v = onnx.load(folder / "net.onnx"), read_tensors(folder / "values")
            session = onnxruntime.InferenceSession(str(folder / "net.onnx"), providers=["CPUExecutionProvider"])
            entry = session.get_inputs()[0].name
            y = session.run(None, {entry: v["x"]})[0]
            one = session.run(None, {entry: v["x"][:1]})[0]  # a batch of another size
            distance = max(np.abs(y - v["y"]).max(), np.abs(one - v["y"][:1]).max()) / np.abs(v["y"]).max()
            ops = collections.Counter(n.op_type for n in net.graph.node)
            good = distance < 1e-5 and not (fold and ops["BatchNormalization"])
            print(f"{name} {distance:.1e} {ops['Transpose']} transposes, {ops['BatchNormalization']} batch norms, "
                  f"{sum(ops.values())} nodes" + ("" if good else "  FAILED"))
            failed += not good
        except Exception as e:  # the line says so
            print(name, "FAILED", type(e).__name__, str(e)[:400])
            failed += 1
    sys.exit(failed > 0)


main()
