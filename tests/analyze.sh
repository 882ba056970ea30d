#!/bin/sh
# analyze.sh - gcc's -fanalyzer over the libraries and the tool; any finding is a failure. Uninitialized
# values are left to clang-tidy and valgrind: gcc 12 sees them in every parallel simd loop. It also takes the
# lanes of a vector for its bits, so that all shifts of vectors are too far; -Wshift-count-overflow knows better.
# Leaks are left to LeakSanitizer (ninja asan): gcc 12 loses what is kept in an element of an array.
set -u
cd "$(dirname "$0")/.." || exit 1
# What includes <mpi.h> is looked at where there is one.
mpi=$(mpicc -show 2>/dev/null | tr ' ' '\n' | sed -n 's/^-I/-isystem /p' | tr '\n' ' ')
export mpi
# shellcheck disable=SC2016 # for the inner shell
[ -e build/onnx/onnx.pb-c.h ] || ninja build/onnx/onnx.pb-c.h || exit 1
find base graph ops backends exec check emit io onnx train cli tools -name '*.c' | { [ -n "$mpi" ] && cat || grep -v /mpi/; } | sort | xargs -P "$(nproc 2>/dev/null || echo 2)" -n 1 sh -c '
    gcc -std=c11 -D_GNU_SOURCE -DELEM_f32 -DISA_base -Iinclude -I. -isystem build/onnx $mpi -fopenmp -O1 -Wall -Wextra -Werror -fanalyzer \
        -Wno-analyzer-use-of-uninitialized-value -Wno-analyzer-shift-count-overflow \
        -Wno-analyzer-malloc-leak -c "$0" -o /dev/null' || exit 1
echo "analyze: clean"
