#!/bin/sh
# accuracy.sh [BUILD [EPOCHS]] - what LeNet must reach with the tool's defaults (best epoch of 10): 98.0 %
# on real digits (MNIST, or ../shared/data/mnist) for three seeds, and 97 % on the drawn ones, in f16 too. It takes
# minutes and is no part of `ninja test`. Without real digits only the drawn ones are tried.
set -u
build=${1:-build}
epochs=${2:-10}
real=${MNIST:-../shared/data/mnist}
status=0

# reach PERCENT OPTION...: trains and compares the best epoch.
reach() {
    wanted=$1
    shift
    best=$("$build/adjoint" train --epochs "$epochs" "$@" | sed -n 's/^best: \([0-9.]*\) %.*/\1/p')
    echo "accuracy: best ${best:-none} %, wanted $wanted %: train $*"
    awk -v best="${best:-0}" -v wanted="$wanted" 'BEGIN { exit !(best >= wanted) }' || status=1
}

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
