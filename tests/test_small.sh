#!/bin/sh
# test_small.sh - programs that are linked with libadjoint_small.a, without oneDNN and without the io
# library, compute what the whole library does on the naive backend: models with their initial values,
# and one with weights from a header, whose size is that of docs/guide/deploy.md. $BUILD: a build folder.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# same LEFT RIGHT: numbers that differ by less than 1e-4 of the largest
same() {
    paste "$1" "$2" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d
        a = $2 < 0 ? -$2 : $2; if (a > largest) largest = a }
        END { if (NR < 2 || NF != 2 || largest == 0 || !(worst <= 1e-4 * largest)) {
            print "test_small: they differ by " worst; exit 1 } }'
}

if ldd "$BUILD/tests/small_predict" | grep -E "dnnl|stdc\+\+|libz|jansson"; then
    echo "test_small: the small library needs more than it says"
    exit 1
fi
for model in lenet lenet5 resnet8 mobilenet_v1 ds_cnn; do
    "$BUILD/tests/small_predict" $model 0 >"$folder/left"
    "$BUILD/tests/small_predict_whole" $model 0 naive >"$folder/right"
    same "$folder/left" "$folder/right"
done

"$BUILD/adjoint" train --model lenet5 --epochs 1 --batch 200 --out "$folder/w.safetensors" >"$folder/out"
"$BUILD/adjoint" convert "$folder/w.safetensors" "$folder/weights.h" >"$folder/out"
cat >"$folder/weights.c" <<'END'
#include <stdlib.h>

#include "adjoint_nn.h"
#include "weights.h"

int main(void)
{
    const adj_model_opts o = {.batch = 1};
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_softmax(adj_model_logits(g, adj_model_find("lenet5", NULL), &o));
    const adj_exec_opts options = {.n_fetch = 1, .fetch = &y, .threads = 1};
    static float x[32 * 32], p[10];
    adj_exec *e = NULL;

    if (adj_exec_new(g, &options, &e) != ADJ_OK)
        return fprintf(stderr, "%s\n", adj_exec_message(e)), 1;
    for (int i = 0; weights[i].name != NULL; i++)
        if (adj_set(e, adj_find(g, weights[i].name), weights[i].data, weights[i].bytes) != ADJ_OK)
            return fprintf(stderr, "%s\n", adj_exec_message(e)), 1;
    for (int i = 0; i < 32 * 32; i++)
        x[i] = ((float)(i * 37 % 256) - weights_mean[0]) / weights_deviation[0];
    adj_set(e, adj_find(g, "images"), x, sizeof x);
    if (adj_run(e) != ADJ_OK || adj_get(e, y, p, sizeof p) != ADJ_OK)
        return fprintf(stderr, "%s\n", adj_exec_message(e)), 1;
    for (int k = 0; k < 10; k++)
        printf("%.9g\n", (double)p[k]);
    adj_exec_free(e);
    adj_graph_free(g);
    return 0;
}
END
# check_size LIBRARY: the stripped program has the size in the library's row of docs/guide/deploy.md, up to 10 %.
check_size() {
    strip "$folder/program"
    # shellcheck disable=SC2016 # backquotes of the document
    sed -n 's/^| `'"$1"'`[^|]*| \([0-9.]*\) |$/\1/p' docs/guide/deploy.md |
        awk -v bytes="$(wc -c <"$folder/program")" -v name="$1" '{ ratio = bytes / 1e6 / $1 }
            END { if (ratio < 0.9 || ratio > 1.1) {
                printf "test_small: a program with %s has %.1f MB, docs/guide/deploy.md says %s\n", name, bytes / 1e6, $1
                exit 1 } }'
}
for library in "$BUILD/libadjoint_small.a" "$BUILD/libadjoint.a -ldnnl"; do
    # shellcheck disable=SC2086 # a list of libraries
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$folder/weights.c" $library -fopenmp -lm \
        -o "$folder/program"
    "$folder/program" >>"$folder/both"
    case $(basename "$BUILD") in # other variants have other sizes
    build) [ "$(uname -m)" != x86_64 ] || check_size "$(basename "${library% *}")" ;;
    esac
done
head -n 10 "$folder/both" >"$folder/left"
tail -n 10 "$folder/both" >"$folder/right"
same "$folder/left" "$folder/right"
awk '{ sum += $1 } END { exit !(sum > 0.999 && sum < 1.001) }' "$folder/left"
