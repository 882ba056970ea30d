#!/bin/sh
# test_conformance.sh - every conformance case, on each backend of the library. CONFORMANCE: another
# folder of cases than tests/conformance.
build=${BUILD:-build}
cases=${CONFORMANCE:-tests/conformance}

# The files there of these names, plain or compressed.
files() {
    for name; do
        for file in "$cases"/$name.json "$cases"/$name.json.gz; do
            [ ! -e "$file" ] || echo "$file"
        done
    done
}

if [ -z "$(files '*')" ]; then
    echo "no conformance cases in $cases"
    exit 1
fi
status=0
for backend in ${BACKENDS:-naive direct onednn}; do
    echo "backend $backend"
    # shellcheck disable=SC2046 # a list of names without spaces
    "$build/tests/conformance" --backend "$backend" --summary $(files '*') || status=1
done
echo "backend onednn, tuned"
# shellcheck disable=SC2046
"$build/tests/conformance" --backend onednn --tune $(files 'tf_*' second_order) || status=1
exit $status
