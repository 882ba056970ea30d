#!/bin/sh
# accuracy.sh [BUILD [EPOCHS]] - what the models must reach with their recipes, by the last of 10 epochs on real digits
# (MNIST, or ../shared/data/mnist), mean of three seeds; lenet with --lr auto within a point of its recipe; and lenet
# 97 % on the drawn digits (best epoch), in f16 too. It is no part of `ninja test`: a model takes minutes, resnet20 and
# vgg6, which are tried with MODELS="resnet20 vgg6" only, an hour. Without real digits only the drawn ones are tried.
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

# mean_of OPTION...: of the last epoch's accuracy over the seeds.
mean_of() {
    for seed in ${SEEDS:-1 2 3}; do
        "$build/adjoint" train --epochs "$epochs" --data "$real" --seed "$seed" "$@" |
            sed -n 's/^epoch.*test accuracy \([0-9.]*\) %.*/\1/p' | tail -n 1
    done | awk '{ sum += $1 } END { printf "%.2f", NR > 0 ? sum / NR : 0 }'
}

# judge PERCENT WANTED WHAT
judge() {
    echo "accuracy: ${1:-none} %, wanted $2 %: $3"
    awk -v got="${1:-0}" -v wanted="$2" 'BEGIN { exit !(got >= wanted) }' || status=1
}

floor_of() {
    case $1 in
    lenet) echo 98.9 ;;
    resnet8) echo 98.7 ;;
    resnet20 | vgg6) echo 99.0 ;;
    mobilenet_v1) echo 98.0 ;;
    ds_cnn) echo 97.5 ;;
    *) echo 101 ;; # there is none
    esac
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
    for model in ${MODELS:-lenet ds_cnn resnet8 mobilenet_v1}; do
        mean=$(mean_of --model "$model")
        judge "$mean" "$(floor_of "$model")" "mean of $model"
        [ "$model" != lenet ] || judge "$(mean_of --lr auto)" "$(awk -v mean="$mean" 'BEGIN { print mean - 1 }')" "mean of lenet with --lr auto"
    done
else
    echo "skipped: no real digits in $real"
fi
judge "$(best_of)" 97.0 "lenet on the drawn digits"
judge "$(best_of --precision f16)" 97.0 "the same in f16"
exit $status
