#!/bin/sh
# test_c_locale.sh - only base/c_locale.c prints and reads numbers, in the C locale: no other object of the
# libraries calls a function that reads numbers or takes a va_list, and no source prints a floating-point
# number by snprintf or fprintf.
set -u
status=0
build=${BUILD:-build}
folders="base graph ops exec check io train backends emit onnx"
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT

# check SENTENCE: fails if there are findings.
check() {
    [ -s "$findings" ] || return 0
    echo "test_c_locale: $1:"
    sed 's/^/  /' "$findings"
    status=1
}

functions='strto(f|d|ld)|atof|(__isoc99_)?v?f?s?scanf|v(f|s|sn|as|d)?printf|strn?casecmp|localeconv|setlocale'
# shellcheck disable=SC2086 # folders are words
(cd "$build" && find $folders -name '*.o' ! -name c_locale.o ! -name mpi.o -exec nm -A -u {} +) | grep -E "U ($functions)(@.*)?\$" >"$findings"
check "expected the functions of base/c_locale.h"

# The strings of a call, up to the first semicolon outside of them, hold no conversion of a double.
# shellcheck disable=SC2086 # folders are words
# shellcheck disable=SC2016 # of awk
find $folders -name '*.[ch]' ! -name 'c_locale.*' -print0 | xargs -0 awk '
    function search(text,    call, strings) {
        while (match(text, /[^_a-z0-9](sn|f|as|d|s)?printf\(/)) {
            text = substr(text, RSTART + RLENGTH)
            match(text, /^("([^"\\]|\\.)*"|[^";])*/)
            call = substr(text, 1, RLENGTH)
            strings = ""
            while (match(call, /"([^"\\]|\\.)*"/)) {
                strings = strings substr(call, RSTART, RLENGTH)
                call = substr(call, RSTART + RLENGTH)
            }
            gsub(/%%/, "", strings)
            if (strings ~ /%[-+ #0]*[0-9*]*(\.[0-9*]*)?[lL]?[aefgAEFG]/)
                print name ": " strings
        }
    }
    FNR == 1 { search(all); all = ""; name = FILENAME }
    { all = all " " $0 }
    END { search(all) }' >"$findings"
check "expected c_snprintf or c_fprintf"
exit $status
