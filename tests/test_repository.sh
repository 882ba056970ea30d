#!/bin/sh
# test_repository.sh - what the sources must not hold: paths of somebody's machine, addresses of
# package hosts, open ends, vector types that crash a compiler; and every source is listed in a
# .ninja file.
set -u
status=0
if [ ! -f sources.ninja ]; then
    echo "skipped: no sources here"
    exit 77
fi
files() {
    git ls-files 2>/dev/null | grep . || find . -type f ! -path './build/*' ! -path './.git/*'
}
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT

# check TITLE PATTERN
check() {
    # shellcheck disable=SC2046 # no path here has a space
    grep -nIE -e "$2" $(files) /dev/null | grep -v 'www\.w3\.org' >"$findings" && {
        echo "test_repository: $1:"
        sed 's/^/  /' "$findings"
        status=1
    }
}
# The brackets keep the patterns from finding themselves.
check "path of a machine" '(^|[^[:alnum:]_.$}/])/([h]ome|[r]oot|[U]sers|[w]ork)/'
check "address of a host" '([h]ttps?|[f]tp)://[[:alnum:]]'
# GCC 14 for aarch64 crashes on such arguments and results. Functions use vector_value (element.h).
check "vector of lesser alignment as an argument or a result" \
    '^((static|inline|ALWAYS) )*(const )?vector [a-z0-9_]+\(|[(,] *(const )?vector [a-z0-9_]+[,)]|^ +(const )?vector [a-z0-9_]+(, .*)?[,)]$'
check "open end" '(^|[^[:alnum:]_])([T]ODO|[F]IXME|[X]XX)([^[:alnum:]_]|$)'
# Durations use the monotonic clock (base/clock.h), since the time of day may be set. One file writes a date.
# shellcheck disable=SC2046
grep -nE 'CLOCK_[R]EALTIME|[g]ettimeofday|(^|[^[:alnum:]_])time\((NULL|0|&)' \
    $(files | grep '\.[ch]$' | grep -vE '^(\./)?(tests/|cli/manual\.c)') /dev/null >"$findings" && {
    echo "test_repository: the clock of the day:"
    sed 's/^/  /' "$findings"
    status=1
}

# not_listed LIST...: those of standard input that are no word of the lists
not_listed() {
    cat "$@" | tr -s ' ' '\n' | sort -u >"$findings"
    sort -u | comm -23 - "$findings"
}
for source in $(find base graph ops backends exec check io train cli tools examples bench tests -name '*.c' ! -path 'tests/golden/*' \
    ! -path 'examples/cortex_m/*' 2>/dev/null |
    not_listed build.ninja sources.ninja tests.ninja variants/*.ninja); do
    echo "test_repository: $source is compiled by none of build.ninja, sources.ninja, tests.ninja and variants/*.ninja"
    status=1
done
# A test below the last section of tests.ninja would not run.
awk '/: test / { below = $2 } /^  dyndep = / { below = "" }
    END { if (below) print "test_repository: tests.ninja, " below " is below the last section, it does not run" }' \
    tests.ninja >"$findings"
[ ! -s "$findings" ] || {
    cat "$findings"
    status=1
}
# What a comment begins in sources.ninja is sorted by its objects.
LC_ALL=C awk '/^#/ { last = "" } /^build [^ ]*\.o: cc/ {
    if ($2 < last) print "test_repository: sources.ninja, line " NR ": not in its place, the sections are sorted"
    last = $2
}' sources.ninja >"$findings"
[ ! -s "$findings" ] || {
    cat "$findings"
    status=1
}
# docs/internals/architecture.md shows the graph that a golden test prints, and the picture that was made from it.
while read -r line; do
    grep -qF -- "$line" docs/internals/architecture.md || {
        echo "test_repository: docs/internals/architecture.md does not show this line of tests/golden/step.txt: $line"
        status=1
    }
done <tests/golden/step.txt
nodes=$(grep -c '^  n[0-9]* \[' tests/golden/step.dot)
if [ "$(grep -c '^<g id="node' docs/pictures/step.svg)" -ne "$nodes" ]; then
    echo "test_repository: docs/pictures/step.svg is not dot -Tsvg tests/golden/step.dot, of $nodes nodes (ninja pictures)"
    status=1
fi
exit $status
