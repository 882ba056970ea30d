#!/bin/sh
# run.sh BUILD TEST... - runs test programs and scripts one after the other, prints what failed or was
# skipped, and ends with "N passed, M failed" (", K skipped"), a line kept in BUILD/tests/summary.
#
# A program is a Criterion test (its closing line is counted), prints "N passed, M failed" itself (those
# are counted), or just exits with 0, or with 77 and "skipped: why" on its last line. With SANITIZER_LOGS=DIR every sanitizer writes its reports there, and
# a report is a failure whatever the test said. TIMEOUT: seconds for one program.
set -u
build=$1
shift
mkdir -p "$build/tests"
output=$build/tests/output
passed=0 failed=0 skipped=0 bad=

# Threads that spin while they wait are slow when a test machine is shared.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} BUILD="$build"

if [ -n "${SANITIZER_LOGS:-}" ]; then
    rm -rf "$SANITIZER_LOGS" "$build/tests/reports"
    mkdir -p "$SANITIZER_LOGS"
    logs=$(cd "$SANITIZER_LOGS" && pwd)
    export ASAN_OPTIONS="log_path=$logs/asan:detect_leaks=1:abort_on_error=0:${ASAN_OPTIONS:-}"
    export UBSAN_OPTIONS="log_path=$logs/ubsan:print_stacktrace=1:${UBSAN_OPTIONS:-}"
    export LSAN_OPTIONS="log_path=$logs/lsan:print_suppressions=0:${LSAN_OPTIONS:-}"
    export TSAN_OPTIONS="log_path=$logs/tsan:${TSAN_OPTIONS:-}"
fi

# The number after a word of Criterion's closing line.
count() {
    sed -n "s/.*Synthesis:.*$1: \([0-9]*\).*/\1/p" "$output" | tail -n 1
}

# The sum of a word of all lines "N passed, M failed".
total() {
    awk -v word="$1" '/^[0-9]+ passed, [0-9]+ failed/ { sum += $word } END { print sum }' "$output"
}

for test; do
    timeout "${TIMEOUT:-900}" "$test" >"$output" 2>&1
    status=$?
    ok=1 no=0 note=
    if [ -n "$(count Tested)" ]; then
        ok=$(count Passing)
        no=$(($(count Failing) + $(count Crashing)))
        if [ "$(count Tested)" -eq 0 ]; then
            no=1 note="no test was run"
        fi
        skips=$(grep -c '^\[.*SKIP' "$output")
        skipped=$((skipped + skips))
    elif [ "$status" -eq 77 ]; then
        ok=0
        skipped=$((skipped + 1))
        note="$(tail -n 1 "$output")"
    elif grep -q '^[0-9]* passed, [0-9]* failed' "$output"; then
        ok=$(total 1)
        no=$(total 3)
    fi
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$no" -eq 0 ]; then
        ok=0 no=1
    fi
    if [ -n "${SANITIZER_LOGS:-}" ] && [ -n "$(ls -A "$logs")" ]; then
        cat "$logs"/* >>"$output"
        mkdir -p "$build/tests/reports"
        mv "$logs"/* "$build/tests/reports/"
        no=$((no + 1))
        note="sanitizer report"
    fi
    passed=$((passed + ok))
    failed=$((failed + no))
    if [ "$no" -ne 0 ]; then
        bad="$bad $test"
        cat "$output"
        echo "FAIL $test (exit $status) $note"
    else
        grep '^\[.*SKIP' "$output"
        echo "ok   $test ($ok) $note"
    fi
done

for test in $bad; do
    echo "failed: $test"
done
summary="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || summary="$summary, $skipped skipped"
echo "$summary" | tee "$build/tests/summary"
[ "$failed" -eq 0 ]
