#!/bin/sh
# test_docs.sh - the documents: the README is short, every relative link leads somewhere, every option in
# a command line exists, every builder is in docs/arguments.md, and the tutorial's listings compile and
# run as they stand. $BUILD: a release build folder.
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
status=0
complain() {
    echo "test_docs: $*"
    status=1
}

lines=$(wc -l <README.md)
[ "$lines" -le 200 ] || complain "README.md has $lines lines, expected at most 200"

for file in README.md CHANGELOG.md docs/*.md; do
    grep -o '](\([^)#]*\)' "$file" | sed 's/^](//' | while read -r link; do
        [ -e "$(dirname "$file")/$link" ] || echo "$file: $link"
    done
done >"$top/broken"
[ ! -s "$top/broken" ] || complain "these links lead nowhere: $(cat "$top/broken")"

# Command lines are indented lines "adjoint COMMAND ...", to their comment or end.
sed -nE 's|^    (build/)?adjoint ([a-z]+) ([^#]*).*|\2 \3|p' README.md docs/*.md >"$top/commands"
while read -r command words; do
    [ -e "$top/$command.help" ] || "$BUILD/adjoint" "$command" --help >"$top/$command.help" 2>&1 ||
        complain "there is no adjoint $command"
    for word in $words; do
        case $word in
        --*)
            grep -q -- "^  $word " "$top/$command.help" || complain "adjoint $command has no $word"
            ;;
        esac
    done
done <"$top/commands"
[ "$(wc -l <"$top/commands")" -ge 10 ] || complain "hardly a command line was found"

grep -oE '^ADJ_API adj_node \*adj_[a-z0-9_]+' include/adjoint_ops.h | sed 's/.*\*//' | while read -r builder; do
    grep -qE "\b$builder\b" docs/arguments.md || echo "$builder"
done >"$top/missing"
[ ! -s "$top/missing" ] || complain "docs/arguments.md lacks $(tr '\n' ' ' <"$top/missing")"

# Each listing names its file: ```c file=train.c
awk -v top="$top" '/^```c file=/ { file = top "/" substr($0, 11); next } /^```/ { file = "" }
    file != "" { print >file }' docs/tutorial.md
packages=$(sed -n "s/^io_packages = //p" build.ninja)
for program in train predict; do
    [ -e "$top/$program.c" ] || {
        complain "docs/tutorial.md has no $program.c"
        continue
    }
    # shellcheck disable=SC2046,SC2086 # words
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$top/$program.c" -o "$top/$program" \
        "$BUILD/libadjoint_io.a" "$BUILD/libadjoint.a" $(pkg-config --libs $packages) -ldnnl -fopenmp -lm
    (cd "$top" && "./$program") >"$top/out" 2>&1 || {
        cat "$top/out"
        complain "the tutorial's $program.c failed"
    }
done
exit $status
