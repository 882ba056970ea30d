#!/bin/sh
# proto.sh CC FOLDER - writes FOLDER/onnx.pb-c.c and .h, the C of the onnx.proto that the compiler finds
# beside the headers of ONNX (libonnx-dev).
set -eu
proto=$(echo '#include <onnx/onnx.proto>' | "$1" -M -x c - | tr ' ' '\n' | grep '/onnx\.proto$')
mkdir -p "$2"
exec protoc-c --proto_path="$(dirname "$proto")" --c_out="$2" "$proto"
