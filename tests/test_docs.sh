#!/bin/sh
# test_docs.sh - the documents: the README is short and its listing prints what its picture shows, every relative link leads
# somewhere, sentences are short, figures of one machine stand in tables, every option in a command line exists,
# the pages that scripts make are up to date, every builder is in docs/reference/ops.md and in adjoint ops, the examples compile
# by their own commands, and the guide's listings compile and run as they stand. $BUILD: a release build folder.
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
status=0
complain() {
    echo "test_docs: $*"
    status=1
}

# at_most BYTES NAME: the standard input is no longer.
at_most() {
    bytes=$(wc -c)
    [ "$bytes" -le "$1" ] || complain "$2 has $bytes bytes, expected at most $1"
}
at_most 6144 README.md <README.md
at_most 10240 docs/internals/performance.md <docs/internals/performance.md
for version in $(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md); do
    awk -v version="$version" '/^## / { inside = $2 == version } inside' CHANGELOG.md >"$top/version"
    at_most 4096 "CHANGELOG.md, version $version," <"$top/version"
done

# A link leads to a file, and what is behind its # to a heading there, in the form that pages on the web give it.
for file in README.md CHANGELOG.md docs/*/*.md; do
    grep -o ']([^)]*)' "$file" | sed 's/^](//; s/)$//' | while read -r link; do
        target=$(dirname "$file")/${link%%#*}
        [ "${link#\#}" = "$link" ] || target=$file
        case $link in
        *#*) sed -n 's/^##* //p' "$target" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-' | grep -qxF -- "${link#*#}" ;;
        *) [ -e "$target" ] ;;
        esac || echo "$file: $link"
    done
done >"$top/broken" 2>&1
[ ! -s "$top/broken" ] || complain "these links lead nowhere: $(cat "$top/broken")"

# sentences PAGE: its sentences of more than 30 words; a cell of a table and an item of a list end one.
sentences() {
    awk -v page="$1" '
        function flush(   n, i, part, word) {
            n = split(text, part, /[.!?]["`)*]* |[.!?]$/)
            for (i = 1; i <= n; i++)
                if (split(part[i], word, " ") > 30)
                    print page ": " part[i]
            text = ""
        }
        /^```/ { listing = !listing; flush(); next }
        listing || /^    / || /^#/ || /^$/ { flush(); next }
        /^\|/ { flush(); gsub(/\|/, ". "); text = $0; flush(); next }
        /^ *- / { flush() }
        { text = text $0 " " }
        END { flush() }' "$1"
}
for page in README.md docs/*/*.md; do
    [ "$page" = docs/reference/command-line.md ] || sentences "$page" # that one is the tool's help
done >"$top/long"
[ ! -s "$top/long" ] || complain "these sentences have more than 30 words: $(cat "$top/long")"

# Dates, commits and processors belong to bench/ and CHANGELOG.md, and processors to rows of the two tables of speed.
grep -n '' README.md docs/*/*.md | sed -E 's#\]\([^)]*\)#]#g' |
    grep -E '[0-9]{4}-[0-9]{2}-[0-9]{2}|\b([0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{5,}\b|EPYC|Xeon|Ryzen|Zen [0-9]' |
    grep -vE '^(README|docs/internals/performance)\.md:[0-9]+:\| (AMD|Intel) ' >"$top/dated" || true
[ ! -s "$top/dated" ] || complain "a date, a commit or a processor: $(cat "$top/dated")"

# What scripts make of the tool, of README.md and of its listing.
docs/command_line.sh "$BUILD/adjoint" >"$top/command-line.md"
diff docs/reference/command-line.md "$top/command-line.md" ||
    complain "docs/reference/command-line.md is not what docs/command_line.sh $BUILD/adjoint prints"
awk -f docs/pictures/bars.awk README.md | cmp -s - docs/pictures/speed.svg ||
    complain "docs/pictures/speed.svg is not the table of README.md (ninja pictures)"
"$BUILD/adjoint" help train | sed -n '/^Environment:/,/^$/s/^  \([A-Z_][A-Z_]*\) .*/\1/p' | while read -r variable; do
    grep -q "\`$variable\`" docs/reference/environment.md || echo "$variable"
done >"$top/missing"
[ ! -s "$top/missing" ] || complain "docs/reference/environment.md lacks $(tr '\n' ' ' <"$top/missing")"

# Command lines are indented lines "adjoint COMMAND ...", to their comment or end.
sed -nE 's|^    (build/)?adjoint ([a-z]+) ([^#]*).*|\2 \3|p' README.md docs/*/*.md >"$top/commands"
while read -r command words; do
    [ -e "$top/$command.help" ] || "$BUILD/adjoint" "$command" --help >"$top/$command.help" 2>&1 ||
        complain "there is no adjoint $command"
    for word in $words; do
        case $word in
        --*)
            word=${word%%=*}
            grep -q -- "^  $word " "$top/$command.help" || complain "adjoint $command has no $word"
            ;;
        esac
    done
done <"$top/commands"
[ "$(wc -l <"$top/commands")" -ge 10 ] || complain "hardly a command line was found"

grep -hoE '^ADJ_API adj_node \*adj_[a-z0-9_]+' include/adjoint_ops.h | sed 's/.*\*//' | while read -r builder; do
    grep -qE "\b$builder\b" docs/reference/ops.md || echo "$builder"
done >"$top/missing"
[ ! -s "$top/missing" ] || complain "docs/reference/ops.md lacks $(tr '\n' ' ' <"$top/missing")"

# Names of the API in the documents are those of the headers, but for those of earlier versions, and the version that CMake asks for is theirs.
cat include/*.h >"$top/headers"
{
    find README.md docs \( -name '*.md' -o -name '*.dox' \) ! -name 'from-*' -exec cat {} +
    sed 's/^|[^|]*|//' docs/reference/from-*.md # the first column holds the names of the version before
} | grep -oE '\b(adj_[a-z0-9_]+|ADJ_[A-Z0-9_]+)' | sort -u | while read -r name; do
    grep -qw -- "$name" "$top/headers" || echo "$name"
done >"$top/missing"
[ ! -s "$top/missing" ] || complain "include/ lacks $(tr '\n' ' ' <"$top/missing")"
version=$(sed -n 's/^#define ADJ_VERSION_TEXT "\(.*\)\..*"/\1/p' include/adjoint.h)
grep -qF "find_package(adjoint $version " docs/guide/deploy.md || complain "docs/guide/deploy.md asks CMake for another version than $version"

# adjoint ops does not list leaves, which no command runs, nor what gradient rules are written with.
"$BUILD/adjoint" ops | sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' >"$top/ops"
printf '%s\n' input scalar_input param state const in_dtype scalar_like stats_row stats_of >>"$top/ops"
grep -hoE '^ADJ_API adj_node \*adj_[a-z0-9_]+' include/adjoint_ops.h ops/grad.h | sed 's/.*\*adj_//' |
    grep -vxF -f "$top/ops" >"$top/missing" || true
[ ! -s "$top/missing" ] || complain "adjoint ops lacks $(tr '\n' ' ' <"$top/missing")"

# Each fenced listing of docs/guide/comparing-backends.md is what the command above it prints: * is any text, a line ... any lines.
awk -v top="$top" '/^    / { command = substr($0, 5) }
    /^```/ {
        inside = !inside
        file = inside && $0 == "```" ? top "/listing" ++n : ""
        if (file != "") print command >(file ".command")
        next
    }
    file != "" { print >file }' docs/guide/comparing-backends.md
for command in "$top"/listing*.command; do
    words=$(sed "s|^adjoint|build/adjoint|; s|^build|$BUILD|" "$command")
    # shellcheck disable=SC2086 # words
    $words >"$top/printed" || true
    awk 'function fits(line, pattern,    n, part, i) {
            gsub(/ +/, " ", line); gsub(/ +/, " ", pattern)
            n = split(pattern, part, "*")
            if (n < 2) return line == pattern
            if (index(line, part[1]) != 1) return 0
            for (i = 1; i <= n; i++) {
                if (part[i] != "" && !index(line, part[i])) return 0
                line = substr(line, index(line, part[i]) + length(part[i]))
            }
            return line == "" || part[n] == ""
        }
        NR == FNR { want[++n] = $0; next }
        { got[++m] = $0 }
        END {
            for (i = j = 1; i <= n; i++) {
                if (want[i] == "...") { any = 1; continue }
                while (any && j < m && !fits(got[j], want[i])) j++
                if (j > m || !fits(got[j], want[i])) { print "expected: " want[i] "\nprinted:  " got[j]; exit 1 }
                j++; any = 0
            }
            if (!any && j <= m) { print "printed:  " got[j]; exit 1 }
        }' "${command%.command}" "$top/printed" || complain "a listing of docs/guide/comparing-backends.md is not what is printed: $(cat "$command")"
done
[ -e "$top/listing2.command" ] || complain "docs/guide/comparing-backends.md has no two listings"

# Each listing names its file: ```c file=train.c
awk -v top="$top" '/^```c file=/ { file = top "/" substr($0, 11); next } /^```/ { file = "" }
    file != "" { print >file }' docs/guide/*.md
# The library as a user installs it, which the listings' commands find.
PREFIX=$top/usr ./install.sh "$BUILD" >/dev/null
export PKG_CONFIG_PATH="$top/usr/lib/pkgconfig"
export LD_LIBRARY_PATH="$top/usr/lib${DNNL:+:$DNNL/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# A picture of a one, 28 x 28 pixels.
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\034\000\000\000\034\001' \
    '\000\000\000\000\132\166\342\071\000\000\000\020\111\104\101\124\170\332\143\140\300\011\330\151\106' \
    '\340\000\000\043\077\000\177\331\255\242\175\000\000\000\000\111\105\116\104\256\102\140\202' >"$top/image.png"
warnings="-std=c11 -Wall -Wextra -Wpedantic -Werror"
# listing PROGRAM: runs the command that the guide prints for it, with warnings, among the files of those before it.
listing() {
    command=$(sed -n "s/^    cc \([^-].*\)/cc $warnings \1/p" docs/guide/*.md | grep -E " -o $1( |\$)")
    [ -n "$command" ] || complain "docs/guide has no command for $1.c"
    (cd "$top" && sh -c "$command") >"$top/out" 2>&1 || {
        cat "$top/out"
        complain "the guide's command for $1.c failed"
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
# The wrong rule that docs/guide/checking-gradients.md plants, and whose blame it shows.
sed 's/adj_square(adj_add(one, size))/adj_add(one, size)/' examples/custom_op.c >"$top/wrong_op.c"
# shellcheck disable=SC2046 # words
cc "$top/wrong_op.c" -o "$top/wrong_op" $(pkg-config --cflags --libs adjoint) -lm
! "$top/wrong_op" >"$top/out" || complain "custom_op.c with a wrong rule is content"
for page in "$top/out" docs/guide/checking-gradients.md; do
    grep -q "fault is in the gradient rule of softsign" "$page" || complain "$page does not blame the rule of softsign"
done
# The front page of the API reference.
sed -n '/^@code/,/^@endcode/p' docs/mainpage.dox | sed '1d;$d' >"$top/square.c"
# shellcheck disable=SC2046,SC2086 # words
cc $warnings "$top/square.c" -o "$top/square" $(pkg-config --cflags --libs adjoint) && "$top/square" >"$top/out"
[ "$(cat "$top/out")" = 6 ] || complain "the front page's listing prints $(cat "$top/out"), expected 6"
# The listing of README.md prints the nodes that its picture has.
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n '/^```c/,/^```$/p' README.md | sed '1d;$d' >"$top/graph.c"
# shellcheck disable=SC2046,SC2086 # words
cc $warnings "$top/graph.c" -o "$top/graph" $(pkg-config --cflags --libs adjoint) && "$top/graph" >"$top/out"
nodes=$(grep -c '^  n[0-9]* \[' "$top/out") || true
[ "$nodes" -gt 0 ] || complain "README.md's listing prints no nodes"
[ "$(grep -c '^<g id="node' docs/pictures/gradient.svg)" -eq "$nodes" ] ||
    complain "docs/pictures/gradient.svg has not the $nodes nodes that README.md's listing prints (ninja pictures)"
listing first
listing loop
listing train
listing predict
grep -q "^a 1 " "$top/out" || complain "the guide's predict.c takes a one for $(cat "$top/out")"
listing inside
for said in 'conv2 [14, 14, 32]: channel ' '1 depends most on the pixel in row '; do
    grep -qF "$said" "$top/out" || complain "the guide's inside.c says $(cat "$top/out"), not \"$said\""
done
listing check
listing compare
listing finetune
"$BUILD/adjoint" convert "$top/digits.safetensors" "$top/weights.h" >"$top/out"
listing deploy
sort -rn -k 2 "$top/out" | head -n 1 | grep -q "^1: " || complain "the guide's deploy.c takes a one for $(cat "$top/out")"
exit $status
