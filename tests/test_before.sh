#!/bin/sh
# test_before.sh - bench/before.py, with programs in place of both tools that say what they took; and the
# examples within bench/scale.py, worked out by hand.
set -u
cd "$(dirname "$0")/.." || exit 1
command -v python3 >/dev/null || { echo "skipped: no python3 here"; exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# tool NAME MEDIAN MINIMUM
tool() {
    printf '#!/bin/sh\necho "{\\"median_ms\\": %s, \\"min_ms\\": %s}"\n' "$2" "$3" >"$folder/$1"
    chmod +x "$folder/$1"
}

# expect STATUS LINE: what it ends with, and a line that it prints.
expect() {
    env -u ONEDNN_MAX_CPU_ISA -u ADJOINT_MAX_ISA python3 bench/before.py "$folder/earlier" \
        --tool "$folder/now" --net lenet --turns 1 >"$folder/out" 2>"$folder/err"
    status=$?
    if [ "$status" -ne "$1" ] || ! grep -qF "$2" "$folder/out"; then
        echo "test_before: exit status $status, expected $1, and the line: $2"
        cat "$folder/out" "$folder/err"
        failed=1
    fi
}

tool earlier 10 8
tool now 9 9
expect 0 "| lenet f32 train | 10.000 | 9.000 | 0.90 | 8.000 | 9.000 | 1.12 |"
tool now 10.3 8.24
expect 0 "0 slower by more than 3 % in median and minimum, 0 not measured"
tool now 11 9
expect 1 "10 slower by more than 3 % in median and minimum, 0 not measured"
printf '#!/bin/sh\necho "no bf16" >&2\nexit 1\n' >"$folder/now"
expect 2 "| lenet f32 train fast | - | - | - | - | - | - |"
rm "$folder/now"
env -u ONEDNN_MAX_CPU_ISA -u ADJOINT_MAX_ISA python3 bench/before.py "$folder/earlier" --tool "$folder/now" \
    2>&1 | grep -q "is no program" || { echo "test_before: a tool that is not there"; failed=1; }
python3 -m doctest bench/scale.py || failed=1
exit "$failed"
