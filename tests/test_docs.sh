#!/bin/sh
# test_docs.sh - the documents: the README is short, every relative link leads somewhere, every option in
# a command line exists, every builder is in docs/reference/ops.md and in adjoint ops, the examples compile by their own
# commands, and the tutorial's listings compile and run as they stand. $BUILD: a release build folder.
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

for file in README.md CHANGELOG.md docs/*.md docs/*/*.md; do
    grep -o '](\([^)#]*\)' "$file" | sed 's/^](//' | while read -r link; do
        [ -e "$(dirname "$file")/$link" ] || echo "$file: $link"
    done
done >"$top/broken"
[ ! -s "$top/broken" ] || complain "these links lead nowhere: $(cat "$top/broken")"

# Command lines are indented lines "adjoint COMMAND ...", to their comment or end.
sed -nE 's|^    (build/)?adjoint ([a-z]+) ([^#]*).*|\2 \3|p' README.md docs/*.md docs/*/*.md >"$top/commands"
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
    grep -qE "\b$builder\b" docs/reference/ops.md || echo "$builder"
done >"$top/missing"
[ ! -s "$top/missing" ] || complain "docs/reference/ops.md lacks $(tr '\n' ' ' <"$top/missing")"

# adjoint ops does not list leaves, which no command runs.
"$BUILD/adjoint" ops | sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' >"$top/ops"
printf '%s\n' input param state const >>"$top/ops"
grep -oE '^ADJ_API adj_node \*adj_[a-z0-9_]+' include/adjoint_ops.h | sed 's/.*\*adj_//' |
    grep -vxF -f "$top/ops" >"$top/missing" || true
[ ! -s "$top/missing" ] || complain "adjoint ops lacks $(tr '\n' ' ' <"$top/missing")"

# The listing of a comparison in docs/checking.md, without what depends on the machine.
sed -n '/^    adjoint compare --op conv2d --in 2,8,8,4/{n;n;:a;n;/^```/q;p;ba}' docs/checking.md >"$top/listing"
command=$(sed -n 's/^    adjoint \(compare --op conv2d --in 2,8,8,4 .*\)/\1/p' docs/checking.md)
# shellcheck disable=SC2086 # words
"$BUILD/adjoint" $command | sed -E 's/[^ ]+ ms a step/* ms a step/; s/, [^ ]+ times the/, * times the/
    s/^(  conv2d.*).{28}(  pass)/\1         *        *        *\2/' >"$top/printed"
diff "$top/listing" "$top/printed" || complain "the listing in docs/checking.md is not what is printed"

# Each listing names its file: ```c file=train.c
awk -v top="$top" '/^```c file=/ { file = top "/" substr($0, 11); next } /^```/ { file = "" }
    file != "" { print >file }' docs/guide/first-net.md
# The library as a user installs it, which the listings' commands find.
PREFIX=$top/usr ./install.sh "$BUILD" >/dev/null
export PKG_CONFIG_PATH="$top/usr/lib/pkgconfig"
export LD_LIBRARY_PATH="$top/usr/lib${DNNL:+:$DNNL/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# A picture of a one, 28 x 28 pixels.
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\034\000\000\000\034\001' \
    '\000\000\000\000\132\166\342\071\000\000\000\020\111\104\101\124\170\332\143\140\300\011\330\151\106' \
    '\340\000\000\043\077\000\177\331\255\242\175\000\000\000\000\111\105\116\104\256\102\140\202' >"$top/image.png"
warnings="-std=c11 -Wall -Wextra -Wpedantic -Werror"
# listing PROGRAM: runs the command that the tutorial prints for it, with warnings, among the files of those before it.
listing() {
    command=$(sed -n "s/^    cc \(.*\)/cc $warnings \1/p" docs/guide/first-net.md | grep -E " -o $1( |\$)")
    [ -n "$command" ] || complain "docs/guide/first-net.md has no command for $1.c"
    (cd "$top" && sh -c "$command") >"$top/out" 2>&1 || {
        cat "$top/out"
        complain "the tutorial's command for $1.c failed"
    }
}
# Each example by the command in its head comment.
mkdir "$top/examples"
for example in examples/*.c; do
    name=${example##*/}
    command=$(sed -n "s/^ \*   cc \($name .*\) && .*/cc \1/p" "$example")
    [ -n "$command" ] || complain "$example has no line \"cc $name ... && ./a.out\""
    cp "$example" "$top/examples"
    (cd "$top/examples" && sh -c "$command") >"$top/out" 2>&1 || {
        cat "$top/out"
        complain "the command in $example failed"
    }
done
# The front page of the API reference.
sed -n '/^@code/,/^@endcode/p' docs/mainpage.dox | sed '1d;$d' >"$top/square.c"
# shellcheck disable=SC2046,SC2086 # words
cc $warnings "$top/square.c" -o "$top/square" $(pkg-config --cflags --libs adjoint) && "$top/square" >"$top/out"
[ "$(cat "$top/out")" = 6 ] || complain "the front page's listing prints $(cat "$top/out"), expected 6"
listing train
listing predict
grep -q "^a 1 " "$top/out" || complain "the tutorial's predict.c takes a one for $(cat "$top/out")"
listing inside
for said in 'conv2 [14, 14, 32]: channel ' '1 depends most on the pixel in row '; do
    grep -qF "$said" "$top/out" || complain "the tutorial's inside.c says $(cat "$top/out"), not \"$said\""
done
listing finetune
"$BUILD/adjoint" convert "$top/digits.safetensors" "$top/weights.h" >"$top/out"
listing deploy
sort -rn -k 2 "$top/out" | head -n 1 | grep -q "^1: " || complain "the tutorial's deploy.c takes a one for $(cat "$top/out")"
exit $status
