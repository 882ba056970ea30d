#!/bin/sh
# find.sh CC - is there a oneDNN that can be built with? DNNL is its prefix, else the compiler finds it.
# Prints where and which, which changes when another is to be taken; what is wrong, in a sentence.
set -eu
cc=$1
where=${DNNL:-the compiler\'s folders}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "oneDNN ($where): $*" >&2
    exit 1
}

[ -z "${DNNL:-}" ] || [ -e "$DNNL/include/oneapi/dnnl/dnnl.h" ] ||
    fail "has no include/oneapi/dnnl/dnnl.h below it (DNNL is the prefix that it was installed to)"
cat >"$folder/version.c" <<'END'
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_config.h>
#include <oneapi/dnnl/dnnl_version.h>
version DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
runtime omp
#endif
END
# shellcheck disable=SC2086 # CC may have options
$cc ${DNNL:+-I"$DNNL/include"} -E -P "$folder/version.c" >"$folder/seen" 2>"$folder/errors" ||
    fail "its headers are not found or do not compile: $(grep -m 1 error "$folder/errors" || true)"
version=$(sed -n 's/^version \([0-9]*\) \([0-9]*\) \([0-9]*\)$/\1.\2.\3/p' "$folder/seen")
case $version in
2.* | 3.*) ;;
*) fail "is version ${version:-unknown} (expected 2.x or 3.x)" ;;
esac
grep -q '^runtime omp$' "$folder/seen" || fail "is not built on OpenMP (expected DNNL_CPU_RUNTIME=OMP)"
echo 'int main(void) { return 0; }' >"$folder/link.c"
# shellcheck disable=SC2086
$cc "$folder/link.c" ${DNNL:+-L"$DNNL/lib"} -Wl,--no-as-needed -ldnnl -o "$folder/link" 2>"$folder/errors" ||
    fail "libdnnl cannot be linked: $(tail -n 1 "$folder/errors")"
needs=$(LD_LIBRARY_PATH=${DNNL:+$DNNL/lib:}${LD_LIBRARY_PATH:-} ldd "$folder/link" 2>/dev/null |
    grep -oE 'lib(iomp5|omp|tbb)\.so[.0-9]*' | head -n 1 || true)
[ -z "$needs" ] || fail "is built on $needs (expected GNU's OpenMP, libgomp: two pools of threads would compete)"
echo "oneDNN $version in $where"
