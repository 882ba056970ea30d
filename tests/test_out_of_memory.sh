#!/bin/sh
# test_out_of_memory.sh - makes each allocation of jansson, libzip, libpng, TurboJPEG and libwebp fail once
# (tests/fail_malloc.c). Either the tool exits with 1 and a file keeps its old content, or the output is that of
# a run with enough memory. Later allocations are tried in strides (REPEAT=2: all of them).
set -u
build=$(cd "${BUILD:-build}" && pwd)
tool=$build/adjoint
seeds=$build/tests/fuzz/corpus/image # each with a byte before the file
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export ADJOINT_TUNE=off OMP_NUM_THREADS=1
passed=0 failed=0

fault() {
    echo "test_out_of_memory: $1"
    failed=$((failed + 1))
}

# fail_each LIBRARY FILE COMMAND...: FILE is a file that the tool's command writes; "": none.
fail_each() {
    library=$1 file=$2
    shift 2
    if ! "$tool" "$@" >right.out 2>right.err; then
        fault "$*: $(cat right.err)"
        return
    fi
    [ -z "$file" ] || mv "$file" right.file
    n=1
    while :; do
        rm -f "$folder/done"
        [ -z "$file" ] || echo before >"$file"
        LD_PRELOAD=$build/tests/fail_malloc.so FAIL_IN=$library FAIL_AT=$n FAIL_DONE=$folder/done \
            "$tool" "$@" >out 2>err
        status=$?
        [ -e "$folder/done" ] || break
        if [ $status -eq 0 ]; then
            cmp -s out right.out || fault "$*: allocation $n: exit 0, and another output"
            [ -z "$file" ] || cmp -s "$file" right.file || fault "$*: allocation $n: exit 0, and another $file"
        elif [ $status -ne 1 ]; then
            fault "$*: allocation $n: exit $status: $(cat err)"
        elif [ -n "$file" ] && [ "$(cat "$file")" != before ]; then
            fault "$*: allocation $n: exit 1, and $file is another"
        elif [ ! -s err ]; then
            fault "$*: allocation $n: exit 1 without a word"
        fi
        [ -z "$file" ] || [ ! -e "$file.partial" ] || fault "$*: allocation $n: $file.partial is left"
        passed=$((passed + 1))
        stride=1
        [ "${REPEAT:-1}" -gt 1 ] || stride=$((n / 40 + 1))
        n=$((n + stride))
    done
    [ "$n" -gt 1 ] || fault "$*: no allocation of $library failed"
}

# put HEADER: its length as eight bytes, and the header.
put() {
    printf "\\$(printf %03o $((${#1} % 256)))\\$(printf %03o $((${#1} / 256)))\\0\\0\\0\\0\\0\\0%s" "$1"
}
# array NAME TYPE SHAPE BEGIN END
array() {
    printf '"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' "$@"
}
# Labels 0, 1, 0, 1, ...; images: zeros to train on, and others to test on.
images() {
    i=0
    while [ $i -lt 4 ]; do
        printf '\0\1'
        i=$((i + 1))
    done
    head -c 6272 /dev/zero
    i=0
    while [ $i -lt 4 ]; do
        printf '\0\1'
        i=$((i + 1))
    done
    head -c 6272 /dev/zero | tr '\0' '\310'
}
header="{$(array y_train U8 8 0 8),$(array x_train U8 8,28,28 8 6280),$(array y_test U8 8 6280 6288),$(
    array x_test U8 8,28,28 6288 12560)}"
{ put "$header"; images; } >data.safetensors
names='"__metadata__":{"class_names":"[\"the first class of all\",\"another\"]","mean":"[0.5]","k":"a value of some length"}'
header="{$names,$(array a.tensor.with_a_long_name F32 1,5,5,2 0 200),$(array b U8 3 200 203)}"
{ put "$header"; head -c 203 /dev/zero; } >w.safetensors

"$tool" convert data.safetensors data.npz >/dev/null &&
    "$tool" train --model lenet5 --data data.npz --backend naive --epochs 1 --out weights.safetensors >/dev/null 2>&1 || exit 1

fail_each libjansson new.safetensors convert w.safetensors new.safetensors
fail_each libjansson new.h convert w.safetensors new.h
fail_each libjansson "" inspect --json w.safetensors
fail_each libjansson "" inspect w.safetensors
fail_each libjansson "" version --json
fail_each libjansson "" ops --json
fail_each libjansson models.json models --json models.json
fail_each libjansson check.json gradcheck --op relu --in 1,2,2,1 --backend naive --json check.json
fail_each libjansson compare.json compare --op relu --in 1,2,2,1 --runs 1 --configs naive:f64,naive --json compare.json
fail_each libzip "" eval --weights weights.safetensors --data data.npz --backend naive
fail_each libzip new.safetensors convert data.npz new.safetensors

# A lack of memory never leaves out a good image. (libwebp reports some of its failures as corrupt data.)
mkdir -p images/0 images/1
tail -c +2 "$seeds/seed-grey_png" >images/0/1.png
tail -c +2 "$seeds/seed-la_png" >images/0/2.png
tail -c +2 "$seeds/seed-grey_jpeg" >images/1/1.jpg
tail -c +2 "$seeds/seed-lossy_webp" >1.webp
for library in libpng libturbojpeg; do
    fail_each $library "" eval --weights weights.safetensors --data images --skip-broken --backend naive
done
fail_each libwebp "" predict --weights weights.safetensors --backend naive 1.webp

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
