#!/bin/sh
# lint.sh - clang-format, cppcheck and clang-tidy over every source; any finding is a failure.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
flags="-std=c11 -D_GNU_SOURCE -DELEM_f32 -DISA_base -Iinclude -I. -Itests -isystem build/onnx -fopenmp"
[ -e build/onnx/onnx.pb-c.h ] || ninja build/onnx/onnx.pb-c.h || exit 1
jobs=$(nproc 2>/dev/null || echo 2)
# What includes <mpi.h> is looked at where there is one; its own faults are not ours. What runs on a Cortex-M alone,
# or includes an emitted net, is compiled by tests/test_emit_arm.sh.
if command -v mpicc >/dev/null; then
    flags="$flags $(mpicc -show | tr ' ' '\n' | sed -n 's/^-I/-isystem /p' | tr '\n' ' ')"
    without='examples/cortex_m/'
else
    without='/mpi/\|examples/cortex_m/'
fi

sources() {
    find include base graph ops backends exec check emit io onnx train cli tools examples tests bench -name "$1" 2>/dev/null | sort
}

say() {
    echo "lint: $*"
}

say clang-format
# shellcheck disable=SC2046 # no path here has a space
clang-format --dry-run -Werror $(sources '*.[ch]') || status=1

say cppcheck
# Tests are left out: Criterion's Test() is a macro that cppcheck does not know. A node that was built
# from attributes on the stack does not point to them, which cppcheck cannot see. Direct kernels lay
# floats out in scratch, whose places are counted in bytes.
sources '*.c' | grep -v '^tests/\|^examples/cortex_m/' | cppcheck --file-list=- -q -j "$jobs" --std=c11 \
    --enable=warning,performance,portability --error-exitcode=1 -Iinclude -I. -DELEM_f32 -DISA_base \
    -D_GNU_SOURCE '-D__attribute__(x)=' --suppress=missingIncludeSystem \
    --suppress=returnDanglingLifetime '--suppress=invalidPointerCast:backends/direct/*' || status=1

say clang-tidy
# The analyzer follows a ninth of the states of a function that it would by default (225000), which takes
# a quarter of the time of all; LINT_STATES=225000 has it go to its end.
states="-Xclang -analyzer-config -Xclang max-nodes=${LINT_STATES:-25000}"
# shellcheck disable=SC2016 # for the inner shell
sources '*.c' | grep -v "$without" | xargs -P "$jobs" -n 1 sh -c 'clang-tidy --quiet "$0" -- '"$flags $states"' 2>/dev/null' || status=1

[ "$status" -eq 0 ] && say clean
exit "$status"
