#!/bin/sh
# test_commands.sh - runs every command line of README.md, docs/ and adjoint help, whose examples the manual
# pages have, too, and expects status 0, and no null from jq: indented lines, those of listings, and commands with
# arguments within a sentence. The lines of a page run one after the other in a folder of its own, with small files
# under the names that the pages use, the guide's listings among them. $BUILD: a release build folder.
# --list prints the lines that are not run, with the reasons. $1: a page, to run its lines alone.
set -eu
command -v bash >/dev/null || {
    echo "skipped: there is no bash, whose pipefail tells that a command in front of a pipe failed"
    exit 77
}
[ -z "${SANITIZER_LOGS:-}" ] || {
    echo "skipped: takes minutes under sanitizers; the commands have tests of their own there"
    exit 77
}
binaries=$(cd "$BUILD" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
status=0

# ---- the lines: "page TAB command" ----

commands=$("$binaries/adjoint" --document commands | tr '\n' '|')
prefix='([A-Z_]+=[^ ]+ )*' # variables
# Lines indented by four in a document, or of a listing from its first column; a line that ends with \ goes on.
# Within a sentence: a command of the tool, or of a program of build/, with arguments, in backquotes.
of_document() {
    awk -v inline="^$prefix((mpirun -n [0-9N]+ )?(build/)?adjoint (${commands%|})|build/t[a-z/_]+) " '
        /^```/ { listing = !listing; goes_on = 0; next }
        goes_on || (listing ? /^[^ ]/ : /^    [^ ]/) {
            line = $0; sub(/^ +/, "", line); sub(/ +# .*/, "", line)
            text = goes_on ? text line : line
            goes_on = sub(/\\$/, "", text)
            if (!goes_on) print FILENAME "\t" text
            next
        }
        !listing {
            n = split($0, span, "`")
            for (i = 2; i < n; i += 2) if (span[i] ~ inline) print FILENAME "\t" span[i]
        }' "$1" |
        grep -E "	$prefix((build/)?adjoint|build/t[a-z/_]+|mpirun|ninja|cc|arm-none-eabi-gcc|qemu-system-arm|strip|git|\./[a-z]+\.sh|bench/[a-z.]+) " || true
}
# Examples of a sub-command's help: indented by two.
of_help() {
    "$binaries/adjoint" help "$1" | sed -n '/^Examples:/,$s/^  \([^ ].*\)/adjoint help '"$1"'	\1/p'
}
for page in README.md docs/*/*.md; do
    [ "$page" = docs/reference/command-line.md ] || of_document "$page" # that one is adjoint help, which follows
done >"$top/lines"
"$binaries/adjoint" help | sed -n '/^Examples:/,$s/^  \([^ ].*\)/adjoint help	\1/p' >>"$top/lines"
for command in $("$binaries/adjoint" --document commands); do
    of_help "$command"
done >>"$top/lines"
[ "$(wc -l <"$top/lines")" -ge 80 ] || {
    echo "test_commands: hardly a command line was found"
    exit 1
}

# Prints why a line is not run, or nothing.
reason() {
    case "$1 " in
    ./setup.sh*) echo "installs packages" ;;
    ninja*) echo "builds or installs the project; tests/test_install.sh, test_deb.sh and test_small.sh do" ;;
    *' ... '* | *' ['* | *' W '* | *' M '* | *' N '*) echo "is a pattern with words to be replaced" ;;
    mpirun*)
        if ! command -v mpirun >/dev/null || ! ls "$binaries"/libadjoint_mpi.so.* >/dev/null 2>&1; then
            echo "there is no mpirun or no libadjoint_mpi; tests/mpi.sh"
        fi
        ;;
    build/tests/planted/*) echo "finds the fault that is planted, with status 1; tests/test_docs.sh" ;;
    build/t*)
        program=${1%% *}
        [ -e "$binaries/${program#build/}" ] || echo "there is no $program"
        ;;
    *build/small_serial/*)
        [ -e "$binaries/small_serial/libadjoint_small.a" ] || echo "there is no small_serial library"
        ;;
    arm-none-eabi-gcc* | qemu-system-arm*)
        command -v arm-none-eabi-gcc >/dev/null && command -v qemu-system-arm >/dev/null ||
            echo "there is no arm-none-eabi-gcc or qemu-system-arm"
        ;;
    bench/scale.py*) echo "reads what mpirun has written; tests/mpi/bench.sh" ;;
    git* | bench/before.py*) echo "needs an older commit; tests/test_before.sh" ;;
    ADJOINT_QUARANTINE=off*) echo "shows a fault of oneDNN that only some CPUs have" ;;
    'adjoint graph '*.svg*) command -v dot >/dev/null || echo "there is no dot" ;;
    *'| jq'*) command -v jq >/dev/null || echo "there is no jq" ;;
    esac
}
if [ "${1:-}" = --list ]; then
    while IFS='	' read -r page line; do
        why=$(reason "$line")
        [ -z "$why" ] || echo "$page: $line ($why)"
    done <"$top/lines"
    exit 0
fi

# ---- the files that the pages name ----

base=$top/base
mkdir -p "$base/DIR/level" "$base/DIR/upright" "$base/mnist" "$base/bin"
ln -s "$binaries" "$base/build"
mkdir "$top/adjoint" # the sources, for pages whose files are in a folder of their own
ln -s "$binaries" "$top/adjoint/build"
ln -s "$PWD/examples" "$top/adjoint/examples"
ln -s "$binaries/adjoint" "$base/bin/adjoint"
ln -s "$PWD/include" "$base/include"
ln -s "$PWD/tests" "$base/tests"
cp examples/lenet.c "$base"
awk -v base="$base" '/^```c file=/ { file = base "/" substr($0, 11); next } /^```/ { file = "" }
    file != "" { print >file }' docs/guide/*.md
PREFIX=$top/usr ./install.sh "$binaries" >/dev/null
# Level and upright stripes of 8 x 8 pixels.
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\010\000\000\000\010\001' \
    '\000\000\000\000\354\164\203\046\000\000\000\020\111\104\101\124\170\332\143\370\317\360\237\001\004\240\064' \
    '\000\047\350\003\375\023\143\373\137\000\000\000\000\111\105\116\104\256\102\140\202' >"$base/seven.png"
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\010\000\000\000\010\001' \
    '\000\000\000\000\354\164\203\046\000\000\000\014\111\104\101\124\170\332\143\070\303\200\002\001\063\020\006' \
    '\141\264\363\134\151\000\000\000\000\111\105\116\104\256\102\140\202' >"$base/upright.png"
base64 -d >"$base/cat.jpg" <<'END'
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqm
x5moq6T/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABgQAAIDAAAAAAAAAAAAAAAAAAAFRYTB/9oACAEBAAA/ACqCsaf/2Q==
END
for i in 1 2 3 4 5 6 7 8 9 10; do
    cp "$base/seven.png" "$base/DIR/level/$i.png"
    cp "$base/upright.png" "$base/DIR/upright/$i.png"
done
cp -r "$base/DIR" "$base/photos"
cp "$base/seven.png" "$base/image.png"
# Forty images of 28 x 28, four of each of ten labels, in IDX.
for part in train t10k; do
    {
        printf '\000\000\010\003\000\000\000\050\000\000\000\034\000\000\000\034'
        awk 'BEGIN { for (i = 0; i < 40 * 784; i++) printf "%c", 33 + (i * i + int(i / 784)) % 90 }'
    } >"$base/mnist/$part-images-idx3-ubyte"
    {
        printf '\000\000\010\001\000\000\000\050'
        for i in 1 2 3 4; do printf '\000\001\002\003\004\005\006\007\010\011'; done
    } >"$base/mnist/$part-labels-idx1-ubyte"
done
ln -s mnist "$base/cifar"

# run FOLDER COMMAND: in that folder, which has the tool under both of its names, with the library installed.
export PKG_CONFIG_PATH="$top/usr/lib/pkgconfig" LD_LIBRARY_PATH="$top/usr/lib${DNNL:+:$DNNL/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run() {
    (cd "$1" && PATH="$1/bin:$PATH" HOME="$top" XDG_CACHE_HOME="$top/cache" ADJOINT_TUNE=off OMP_WAIT_POLICY=passive \
        bash -o pipefail -c "$2") >"$top/out" 2>&1 </dev/null
}
make() {
    run "$base" "$1" || {
        cat "$top/out"
        echo "test_commands: cannot make the files: $1"
        exit 1
    }
}
make "adjoint train --data DIR --epochs 1 --out mine.safetensors"
make "adjoint train --model resnet20 --data mnist --epochs 1 --out ours.safetensors"
make "adjoint convert ours.safetensors resnet20.safetensors --map pytorch --to-theirs"
make "adjoint train --limit 100 --epochs 1 --out lenet.safetensors"
make "adjoint convert lenet.safetensors w.npz"
make "build/tests/onnx/save_case lenet nchw net.onnx values.safetensors"
make "adjoint convert mine.safetensors weights.h"
cp "$base/mine.safetensors" "$base/best.safetensors"
cp "$base/resnet20.safetensors" "$base/theirs.safetensors"
# Of the guide's network, after a little training only, whose accuracy train.c is not content with.
sed -i.whole 's/TRAIN = 4000/TRAIN = 100/; s/EPOCHS = 3/EPOCHS = 1/' "$base/train.c"
make "cc train.c -o train \$(pkg-config --cflags --libs adjoint adjoint_io) && { ./train || test -e digits.safetensors; }"
mv "$base/train.c.whole" "$base/train.c"
# x.safetensors: float32 tensors of ones for conv2d (input, filter, dy) and for gelu and softmax (x0).
tensors() {
    header=$1
    printf "%b" "\\$(printf '%03o' ${#header})\\000\\000\\000\\000\\000\\000\\000" | head -c 8
    printf '%s' "$header"
    awk -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "\x3f\x3f\x3f\x3f" }'
}
tensors '{"input":{"dtype":"F32","shape":[1,4,4,1],"data_offsets":[0,64]},"filter":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[64,68]},"dy":{"dtype":"F32","shape":[1,2,2,1],"data_offsets":[68,84]}}' 21 >"$base/conv2d.safetensors"
tensors '{"x0":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]},"dy":{"dtype":"F32","shape":[4,4],"data_offsets":[64,128]}}' 32 >"$base/x0.safetensors"

# ---- running them ----

# Makes a line small: fewer digits, draws, timed runs, cases and shapes. "..." stands for what a user fills in.
shorten() {
    short=$(printf '%s\n' "$1" | sed -E 's/IMAGE\.\.\./seven.png/; s/ \.\.\.$//; s/(adjoint gradcheck)/\1 --draws 1 --threads 1/
        s/(adjoint compare)/\1 --runs 1 --threads 1/
        s/(adjoint bench.*) --batch 128/\1 --batch 2/; s/(adjoint bench --op .*--in )[0-9]+,[0-9]+,[0-9]+,/\11,8,8,/
        s/(adjoint bench)/\1 --seconds 0.2 --threads 1/; s/(tools\/sweep)/\1 --cases 32/')
    case $short in
    *'adjoint train'*--data*) ;;
    *'adjoint train'*) short=$(printf '%s\n' "$short" | sed 's/adjoint train/adjoint train --limit 100/') ;;
    *'adjoint compare'*--op*) short=$(printf '%s\n' "$short" | sed 's/adjoint compare/adjoint compare --neighbors 0/') ;;
    *'adjoint compare'*) short=$(printf '%s\n' "$short" | sed 's/adjoint compare/adjoint compare --also-batch 0 --batch 2/') ;;
    esac
}

n=0
page_before=
touch "$top/done"
while IFS='	' read -r page line; do
    [ -z "${1:-}" ] || [ "$page" = "$1" ] || continue
    [ -z "$(reason "$line")" ] || continue
    if [ "$page" != "$page_before" ]; then
        rm -rf "$top/page"
        cp -r "$base" "$top/page"
        page_before=$page
    fi
    case $line in
    *'op conv2d'*) cp "$base/conv2d.safetensors" "$top/page/x.safetensors" ;;
    *) cp "$base/x0.safetensors" "$top/page/x.safetensors" ;;
    esac
    shorten "$line"
    n=$((n + 1))
    case $short in
    *gradcheck* | *compare* | *bench*) # once: they read no files
        ! grep -qxF -- "${short#build/}" "$top/done" || continue
        printf '%s\n' "${short#build/}" >>"$top/done"
        ;;
    esac
    start=$(date +%s)
    passed=1
    run "$top/page" "$short" || passed=0
    case $short in
    *'| jq'*) ! grep -qx null "$top/out" || passed=0 ;;
    esac
    [ "$passed" -eq 1 ] || {
        status=1
        echo "test_commands: $page: $line"
        tail -n 5 "$top/out"
    }
    [ -z "${VERBOSE:-}" ] || echo "$(($(date +%s) - start)) s: $page: $short"
done <"$top/lines"
[ "$n" -ge 60 ] || [ -n "${1:-}" ] || {
    echo "test_commands: $n lines were run, expected at least 60"
    status=1
}
exit $status
