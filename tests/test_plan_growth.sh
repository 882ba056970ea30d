#!/bin/sh
# test_plan_growth.sh - building and planning a graph takes n log n at most. valgrind counts instructions,
# which do not depend on the machine's load. Four times as many nodes may take 4.8 times as many
# instructions (1,000 to 4,000 nodes: 4 x log 4,000 / log 1,000). $BUILD: a build folder.
set -eu
command -v valgrind >/dev/null || {
    echo "skipped: valgrind is missing (./setup.sh --dev)"
    exit 77
}

# count KIND NODES: instructions
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$BUILD/tests/plan_growth" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

passed=0 failed=0
for kind in chain fused wide train; do
    start=$(count $kind 7) few=$(count $kind 1000) many=$(count $kind 4000)
    ratio=$(echo "$start $few $many" | awk '{ printf "%.2f", ($3 - $1) / ($2 - $1) }')
    if echo "$ratio" | awk '{ exit !($1 > 1 && $1 <= 4.8) }'; then
        passed=$((passed + 1))
    else
        echo "test_plan_growth: $kind: four times the nodes take $ratio times the instructions (expected at most 4.8)"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
