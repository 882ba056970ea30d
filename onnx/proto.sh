#!/bin/sh
# proto.sh CC FOLDER - writes FOLDER/onnx.pb-c.c and .h, the C of the onnx.proto that the compiler finds
# beside the headers of ONNX (libonnx-dev). Nodes and graphs have metadata since ONNX 1.16; added to an older one.
set -eu
proto=$(echo '#include <onnx/onnx.proto>' | "$1" -M -x c - | tr ' ' '\n' | grep '/onnx\.proto$')
mkdir -p "$2"
add() { # MESSAGE NUMBER
    if ! grep -q "metadata_props = $2;" "$proto"; then
        echo "/^message $1 {/a\\  repeated StringStringEntryProto metadata_props = $2;"
    fi
}
{ add NodeProto 9 && add GraphProto 16; } | sed -f - "$proto" >"$2/onnx.proto"
exec protoc-c --proto_path="$2" --c_out="$2" "$2/onnx.proto"
