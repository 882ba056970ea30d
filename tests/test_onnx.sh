#!/bin/sh
# test_onnx.sh - ONNX's own node tests and models; networks that PyTorch exports, imported and trained beside it, in C
# and by the tool; and files that adjoint writes, run by ONNX Runtime. $BUILD: a build folder; $ONNX_PYTHON: a Python
# that has onnx, torch, onnxscript and onnxruntime (default: python3); $KERAS_PYTHON: one that has tensorflow and
# tf2onnx, for networks of Keras.
set -u
python=${ONNX_PYTHON:-python3}
if ! "$python" -c 'import onnx, onnxruntime, onnxscript, torch' 2>/dev/null; then
    echo "skipped: $python lacks onnx, onnxruntime, onnxscript or torch (ONNX_PYTHON names another)"
    exit 77
fi
programs=$BUILD/tests/onnx
"$python" -W ignore tests/onnx/nodes.py "$programs/run_cases" &&
    "$python" -W ignore tests/onnx/gradients.py "$programs/run_cases" &&
    "$python" -W ignore tests/onnx/shipped.py "$programs/run_cases" &&
    "$python" -W ignore tests/onnx/saved.py "$programs/save_case" &&
    "$python" -W ignore tests/onnx/tool.py "$BUILD/adjoint" &&
    "$python" -W ignore tests/onnx/networks.py "$programs/train_case" &&
    "$python" -W ignore tests/onnx/more_networks.py "$programs/train_case" &&
    { [ -z "${KERAS_PYTHON:-}" ] || "$KERAS_PYTHON" -W ignore tests/onnx/keras_nets.py "$programs/train_case"; }
