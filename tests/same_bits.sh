#!/bin/sh
# same_bits.sh OLD [NEW] - whether two commits (NEW: what is here) train to the same bits: every model in
# f32, mixed precision, bf16 and f64, STEPS (20) steps on one thread. Builds each commit in a folder of its
# own below build/same_bits. Prints what differs; status 1 if anything does.
set -eu
cd "$(dirname "$0")/.."
top=$PWD steps=${STEPS:-20}
[ $# -ge 1 ] || {
    echo "usage: tests/same_bits.sh OLD [NEW]" >&2
    exit 3
}

# lines_of COMMIT NAME: builds it and leaves what its models train to in build/same_bits/NAME.
lines_of() {
    folder=$top/build/same_bits/$2.tree
    rm -rf "$folder"
    mkdir -p "$folder"
    if [ "$1" = . ]; then
        git ls-files -z | tar -c --null --verbatim-files-from -T - | tar -x -C "$folder"
    else
        git archive "$1" | tar -x -C "$folder"
    fi
    (cd "$folder" && ninja build/libadjoint.a build/libadjoint_io.a)
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -I"$folder/include" tests/same_bits_steps.c -o "$folder/steps" \
        "$folder/build/libadjoint.a" -ldnnl -fopenmp -lm
    "$folder/steps" "$steps" >"build/same_bits/$2" || {
        cat "build/same_bits/$2"
        exit 1
    }
}
lines_of "$1" old
lines_of "${2:-.}" new
if [ -s build/same_bits/new ] && diff build/same_bits/old build/same_bits/new; then
    echo "same bits: all $(wc -l <build/same_bits/new)"
else
    echo "same bits: not everywhere (< old, > new)"
    exit 1
fi
