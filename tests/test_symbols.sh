#!/bin/sh
# test_symbols.sh - what the built libraries export, import and keep: only adj_* leaves them, nothing in
# them prints, aborts, exits or keeps changing data between calls, and the core needs libc, libm, OpenMP
# and oneDNN alone. $BUILD: a release build folder.
set -u
export LC_ALL=C
status=0

complain() {
    echo "test_symbols: $1:"
    sed 's/^/  /' "$findings"
    status=1
}
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT

# Before 1.0 a minor version may change any struct: the name carries it.
abi=$(awk '/^#define ADJ_VERSION_MAJOR/ { major = $3 } /^#define ADJ_VERSION_MINOR/ { minor = $3 }
    END { print major == 0 ? major "." minor : major }' include/adjoint.h)
for name in libadjoint libadjoint_io libadjoint_emit libadjoint_onnx; do
    so=$BUILD/$name.so.$abi
    archive=$BUILD/$name.a

    # The linker defines three names where a library that is linked with asks for one of them.
    nm -D --defined-only "$so" | awk '$NF !~ /^(adj_.*|__bss_start|_edata|_end)$/' >"$findings"
    [ ! -s "$findings" ] || complain "$so exports more than adj_*"

    # .data.rel.ro (const structs with pointers) is read-only once loaded.
    size -A "$archive" | awk '/ex / { object = $1 }
        $1 ~ /^\.(data|bss|tdata|tbss)(\.|$)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print object, $0 }' >"$findings"
    nm "$archive" | awk '$2 == "C"' >>"$findings"
    [ ! -s "$findings" ] || complain "$archive has data that changes"

    nm -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u | grep -xE \
        'abort|_?exit|_Exit|quick_exit|raise|kill|__assert.*|v?printf|puts|putchar|perror|psignal|stdout|stderr|stdin|__printf_chk|__vprintf_chk|s?rand|random|strtok|setlocale|atexit|signal|sigaction|v?fork|system|popen|GOMP_critical.*' >"$findings"
    [ ! -s "$findings" ] || complain "$archive calls what a library must not"

    soname=$(readelf -d "$so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    [ "$soname" = "$name.so.$abi" ] || {
        echo "test_symbols: $so has SONAME $soname, expected $name.so.$abi"
        status=1
    }
done

needed() {
    readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'
}
needed "$BUILD/libadjoint.so.$abi" | grep -vE '^(libc|libm|libgomp|libdnnl)\.so\.' >"$findings"
[ ! -s "$findings" ] || complain "libadjoint needs more than libc, libm, libgomp and libdnnl"
needed "$BUILD/libadjoint_io.so.$abi" | grep -vE '^(libc|libm|libgomp|libz|libjansson|libpng16|libturbojpeg|libwebp|libzip|libadjoint)\.so\.' >"$findings"
[ ! -s "$findings" ] || complain "libadjoint_io needs more than libc, libm, libgomp, libz, libjansson, libpng, libturbojpeg, libwebp, libzip and libadjoint"
needed "$BUILD/libadjoint_emit.so.$abi" | grep -vE '^(libc|libm|libgomp|libadjoint)\.so\.' >"$findings"
[ ! -s "$findings" ] || complain "libadjoint_emit needs more than libc, libm, libgomp and libadjoint"
needed "$BUILD/libadjoint_onnx.so.$abi" | grep -vE '^(libc|libm|libgomp|libprotobuf-c|libadjoint)\.so\.' >"$findings"
[ ! -s "$findings" ] || complain "libadjoint_onnx needs more than libc, libm, libgomp, libprotobuf-c and libadjoint"
exit $status
