#!/bin/sh
# test_dnnl.sh - the message for an unusable DNNL=PREFIX, before anything is compiled.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc=${CC:-cc}

# expect SENTENCE: what find.sh says of the folder, and that it fails
expect() {
    if said=$(DNNL="$folder" backends/onednn/find.sh "$cc" 2>&1) || [ "${said#*"$1"}" = "$said" ]; then
        echo "test_dnnl: \"$said\", expected \"$1\""
        exit 1
    fi
}

# headers MAJOR RUNTIME
headers() {
    mkdir -p "$folder/include/oneapi/dnnl" "$folder/lib"
    : >"$folder/include/oneapi/dnnl/dnnl.h"
    printf '#define DNNL_RUNTIME_OMP 2\n#define DNNL_CPU_RUNTIME %s\n' "$2" >"$folder/include/oneapi/dnnl/dnnl_config.h"
    printf '#define DNNL_VERSION_%s\n' "MAJOR $1" "MINOR 9" "PATCH 1" >"$folder/include/oneapi/dnnl/dnnl_version.h"
}

expect "has no include/oneapi/dnnl/dnnl.h below it"
headers 1 2
expect "is version 1.9.1 (expected 2.x or 3.x)"
headers 3 4
expect "is not built on OpenMP"
headers 3 2
echo 'no library' >"$folder/lib/libdnnl.so"
expect "libdnnl cannot be linked"
"$cc" -shared -o "$folder/lib/libiomp5.so" -x c /dev/null
"$cc" -shared -o "$folder/lib/libdnnl.so" -x c /dev/null -Wl,--no-as-needed -L"$folder/lib" -liomp5
expect "is built on libiomp5.so (expected GNU's OpenMP, libgomp"
"$cc" -shared -o "$folder/lib/libdnnl.so" -x c /dev/null
if [ "$(DNNL="$folder" backends/onednn/find.sh "$cc")" != "oneDNN 3.9.1 in $folder" ]; then
    echo "test_dnnl: a fine one is not taken"
    exit 1
fi
