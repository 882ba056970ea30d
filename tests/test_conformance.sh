#!/bin/sh
# test_conformance.sh - every conformance case, on each backend of the library. The cases lie outside
# the repository (CONFORMANCE, or ../shared/conformance); without them the test is skipped.
build=${BUILD:-build}
cases=${CONFORMANCE:-../shared/conformance}
set -- "$cases"/*.json
if [ ! -e "$1" ]; then
    echo "skipped: no conformance cases in $cases"
    exit 77
fi
status=0
for backend in ${BACKENDS:-naive onednn}; do
    echo "backend $backend"
    "$build/tests/conformance" --backend "$backend" --summary "$@" || status=1
done
echo "backend onednn, tuned"
"$build/tests/conformance" --backend onednn --tune "$cases"/tf_*.json "$cases"/second_order.json || status=1
exit $status
