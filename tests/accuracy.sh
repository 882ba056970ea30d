#!/bin/sh
# accuracy.sh [BUILD [EPOCHS]] - what LeNet must reach with the tool's defaults (best epoch of 10): 98.0 %
# on real digits (MNIST, or ../shared/data/mnist) for three seeds, and 97 % on the drawn ones, in f16 too. It takes
# minutes and is no part of `ninja test`. Without real digits only the drawn ones are tried.
#
# With PRECISION=bf16 (or f16) that precision is compared with f32 instead, on the real digits: the means of the
# best epochs of five seeds may be 0.3 points apart. SEEDS="1 2" takes other seeds.
set -u
build=${1:-build}
epochs=${2:-10}
real=${MNIST:-../shared/data/mnist}
status=0

# best_of OPTION...: trains and prints the accuracy of the best epoch.
best_of() {
    "$build/adjoint" train --epochs "$epochs" "$@" | sed -n 's/^best: \([0-9.]*\) %.*/\1/p'
}

# reach PERCENT OPTION...: trains and compares the best epoch.
reach() {
    wanted=$1
    shift
    best=$(best_of "$@")
    echo "accuracy: best ${best:-none} %, wanted $wanted %: train $*"
    awk -v best="${best:-0}" -v wanted="$wanted" 'BEGIN { exit !(best >= wanted) }' || status=1
}

# apart PRECISION: for each seed f32's best epoch and the other's, then the means.
apart() {
    rows=
    for seed in ${SEEDS:-1 2 3 4 5}; do
        f32=$(best_of --data "$real" --seed "$seed")
        other=$(best_of --data "$real" --seed "$seed" --precision "$1")
        echo "accuracy: seed $seed: f32 ${f32:-none} %, $1 ${other:-none} %"
        rows="$rows$f32 $other;"
    done
    printf '%s' "$rows" | tr ';' '\n' | awk -v name="$1" '
        { f32 += $1; other += $2; failed += NF != 2 }
        END {
            if (failed || NR == 0)
                exit 1
            gap = (other - f32) / NR
            printf "accuracy: means of %d seeds: f32 %.3f %%, %s %.3f %%: %+.3f points, allowed 0.3\n", NR, f32 / NR, name, other / NR, gap
            exit gap > 0.3 || gap < -0.3
        }'
}

if [ -n "${PRECISION:-}" ]; then
    [ -d "$real" ] || { echo "skipped: no real digits in $real"; exit 0; }
    apart "$PRECISION"
    exit
fi
if [ -d "$real" ]; then
    for seed in 1 2 3; do
        reach 98.0 --data "$real" --seed "$seed"
    done
else
    echo "skipped: no real digits in $real"
fi
reach 97.0
reach 97.0 --precision f16
exit $status
