#!/bin/sh
# test_out_of_memory.sh - makes each allocation of jansson, libzip, zlib, libpng, TurboJPEG, libwebp and protobuf-c
# fail once (tests/fail_malloc.c). Either the tool exits with 1 and a file keeps its old content, or the output is that of
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

# Removes times and speeds from a training's output and log, and all numbers from a benchmark's.
steady() {
    case $1 in
    train) sed -E 's/[0-9.e+]+ images\/s//; s/"(seconds|waited|images_per_second)":[^,}]*//g' "$2" ;;
    bench) sed -E 's/[0-9][0-9.e+-]*//g' "$2" ;;
    *) cat "$2" ;;
    esac
}

# is_whole FILE COMMAND: the file is that of a run with enough memory.
is_whole() {
    steady "$2" "$1" >new.steady
    steady "$2" "right/$1" | cmp -s - new.steady
}

# check FILE STATUS COMMAND: a log has whole lines; another file is the new one, or after exit 1 the old one, which
# only a training may have replaced by then, by a whole file of the step at which it stopped.
check() {
    case $1 in
    log)
        [ "$2" -ne 0 ] || is_whole log "$3" || return 1
        [ ! -e log ] || steady "$3" log | cmp -s -n "$(steady "$3" log | wc -c)" - right/log.steady
        ;;
    *)
        if [ "$2" -eq 0 ]; then
            is_whole "$1" "$3"
        else
            [ "$(cat "$1")" = before ] || { [ "$3" = train ] && "$tool" inspect "$1" >inspected 2>&1; }
        fi
        ;;
    esac
}

# The files as they are before each run, also before the one with enough memory: there is no log, and the others
# hold "before", of which the tool may print a note.
put_before() {
    rm -f log
    for file in $files; do
        [ "$file" = log ] || echo before >"$file"
    done
}

# fail_each LIBRARY FILES COMMAND...: FILES are files that the tool's command writes; "": none.
fail_each() {
    library=$1 files=$2
    shift 2
    put_before
    if ! "$tool" "$@" >out 2>right.err; then
        fault "$*: $(cat right.err)"
        return
    fi
    mkdir -p right
    # shellcheck disable=SC2086 # names without spaces
    mv out $files right
    [ ! -e right/log ] || steady "$1" right/log >right/log.steady
    n=1
    while :; do
        rm -f "$folder/done"
        put_before
        LD_PRELOAD=$build/tests/fail_malloc.so FAIL_IN=$library FAIL_AT=$n FAIL_DONE=$folder/done \
            "$tool" "$@" >out 2>err
        status=$?
        [ -e "$folder/done" ] || break
        if [ $status -eq 0 ]; then
            is_whole out "$1" || fault "$*: allocation $n: exit 0, and another output"
        elif [ $status -ne 1 ]; then
            fault "$*: allocation $n: exit $status: $(cat err)"
        elif [ ! -s err ]; then
            fault "$*: allocation $n: exit 1 without a word"
        fi
        for file in $files; do
            check "$file" $status "$1" || fault "$*: allocation $n: exit $status, and another $file"
            [ ! -e "$file.partial" ] || fault "$*: allocation $n: $file.partial is left"
        done
        [ "$(grep -c 'out of memory' err)" -le 1 ] || fault "$*: allocation $n: reported twice: $(cat err)"
        passed=$((passed + 1))
        stride=1
        [ "${REPEAT:-1}" -gt 1 ] || stride=$((n / 24 + 1))
        n=$((n + stride))
    done
    [ "$n" -gt 1 ] || fault "$*: no allocation of $library failed"
    [ -z "${VERBOSE:-}" ] || echo "$library: $*: $n"
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
fail_each libjansson "" bench --op relu --in 1,2,2,1 --backend naive --seconds 0.001 --json
fail_each libjansson "trained.safetensors checkpoint log" train --model lenet5 --data data.npz --backend naive \
    --epochs 1 --out trained.safetensors --checkpoint checkpoint --log log
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
fail_each libjansson "" predict --weights weights.safetensors --backend naive --json images/0/1.png images/0/2.png
# Images that are compressed: libz.so is part of neither libzip's name nor libzstd's.
mkdir gzip
for part in train t10k; do
    { printf '\0\0\010\003\0\0\0\010\0\0\0\034\0\0\0\034' && head -c 6272 /dev/zero; } |
        gzip >gzip/$part-images-idx3-ubyte.gz
    printf '\0\0\010\001\0\0\0\010\0\1\0\1\0\1\0\1' | gzip >gzip/$part-labels-idx1-ubyte.gz
done
fail_each libz.so "" eval --weights weights.safetensors --data gzip --backend naive
# The net is read for its size, its classes, and once a graph.
"$build/tests/onnx/save_case" lenet5 nchw net.onnx values.safetensors || exit 1
fail_each libprotobuf-c "" inspect net.onnx
fail_each libprotobuf-c trained.safetensors train --model net.onnx --head new --data data.npz --backend naive \
    --epochs 1 --out trained.safetensors

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
