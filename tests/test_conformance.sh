#!/bin/sh
# test_conformance.sh - every conformance case, on each backend of the library; first, that the runner
# fails a case with an unknown key and names the key, and reads files plain and compressed, but none that
# is cut off. CONFORMANCE: another folder of cases than tests/conformance.
set -eu
build=${BUILD:-build}
cases=${CONFORMANCE:-tests/conformance}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

# expect LAST_LINE WORDS CASE: what is printed when the case is run.
expect() {
    echo "[$3]" >"$top/case.json"
    "$build/tests/conformance" "$top/case.json" >"$top/out" 2>&1 || true
    if [ "$(tail -n 1 "$top/out")" != "$1" ] || ! grep -q "$2" "$top/out"; then
        cat "$top/out"
        echo "expected \"$1\" and \"$2\" of $3"
        exit 1
    fi
}
tensor='{"shape": [2], "data": [1, -1]}'
features="\"gradients\": $tensor, \"features\": $tensor"
head='"id": "x", "op": "relu_grad", "dtype": "f32", "rtol": 0, "atol": 0'
right="\"attrs\": {}, \"expected\": {\"shape\": [2], \"data\": [1, 0]}"
passes="1 passed, 0 failed" fails="0 passed, 1 failed"

expect "$passes" "" "{$head, $right, \"inputs\": {$features}}"
expect "$fails" "unknown key: expectde" "{$head, $right, \"inputs\": {$features}, \"expectde\": 1}"
expect "$fails" "unknown key: expected_backprop" \
    "{$head, $right, \"inputs\": {$features}, \"expected_backprop\": $tensor}"
expect "$fails" "unknown key: inputs.filter" "{$head, $right, \"inputs\": {$features, \"filter\": $tensor}}"
expect "$fails" "unknown key: inputs.grad_output" \
    "{$head, $right, \"inputs\": {$features, \"grad_output\": $tensor}}"
expect "$fails" "unknown key: attrs.strides" \
    "{$head, \"expected\": $tensor, \"attrs\": {\"strides\": [1]}, \"inputs\": {$features}}"
expect "$fails" "unknown key: features.dtype" \
    "{$head, $right, \"inputs\": {\"gradients\": $tensor, \"features\": {\"shape\": [2], \"data\": [1, -1], \"dtype\": 1}}}"
expect "$fails" "unknown key: dtypes.filter" \
    "{$head, $right, \"inputs\": {$features}, \"dtypes\": {\"filter\": \"f32\"}}"
expect "$fails" "unknown key: expected_grads.filter" "{$head, \"attrs\": {}, \"gradient_of_op\": true,
    \"inputs\": {$features, \"grad_output\": $tensor}, \"expected_grads\": {\"filter\": $tensor}}"
expect "$fails" "gradient_of_op without: expected_grads" \
    "{$head, $right, \"gradient_of_op\": true, \"inputs\": {$features}}"
expect "$fails" "unknown scope: gpu-only" "{$head, $right, \"inputs\": {$features}, \"scope\": \"gpu-only\"}"
expect "$fails" "no tensor is expected: output" "{$head, \"attrs\": {}, \"inputs\": {$features}}"
expect "$fails" "no tensor is expected: output" "{$head, \"attrs\": {}, \"inputs\": {$features}, \"expected\": 3}"
expect "$fails" "duplicate" "{$head, $right, \"inputs\": {$features}, \"id\": \"y\"}"

echo "[{$head, $right, \"inputs\": {$features}}]" | gzip -c >"$top/whole.json.gz"
"$build/tests/conformance" "$top/whole.json.gz" >"$top/out"
head -c 100 "$top/whole.json.gz" >"$top/cut.json.gz"
if "$build/tests/conformance" "$top/cut.json.gz" >"$top/out" ||
    "$build/tests/conformance" "$top/none.json" >"$top/out"; then
    echo "a file that is cut off or not there is none"
    exit 1
fi

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
