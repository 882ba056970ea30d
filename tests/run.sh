#!/bin/sh
# run.sh BUILD TEST... - runs test programs and scripts, several at a time, prints of each as it ends
# what failed or was skipped, and ends with "N passed, M failed" (", K skipped"), a line kept in
# BUILD/tests/summary.
#
# A program is a Criterion test (its closing line is counted), prints "N passed, M failed" itself (those
# are counted), or just exits with 0, or with 77 and "skipped: why" on its last line. A line that begins
# with "[SKIP]" is a part that was skipped. With SANITIZER_LOGS=DIR every sanitizer writes its reports
# there, and a report is a failure even if the test passed: they are kept in BUILD/tests/reports.
#
# TEST_LOCALE: the locale that test programs set, such as de_DE.UTF-8. TIMEOUT: seconds for one program. JOBS: how many programs run at a time; one more than there are
# cores, because some of them wait. Two runs at once, even of one build folder, do not disturb each
# other: each has a folder of its own for what its programs print.
set -u

# What measures time, or acts at certain times, runs alone, after the others.
alone="test_bench test_tune"
# Long tests start first, by this list until BUILD/tests/times exists.
long="test_compare test_cli test_examples test_gradcheck_cli test_direct_gemm
    test_checkpoint test_settings test_gradcheck test_terminal test_fusion
    test_sweep test_recompute test_deb test_processes test_out_of_memory"

# The number after a word of Criterion's closing line in a program's output.
count() {
    sed -n "s/.*Synthesis:.*$2: \([0-9]*\).*/\1/p" "$1" | tail -n 1
}

# The sum of a word of all lines "N passed, M failed".
total() {
    awk -v word="$2" '/^[0-9]+ passed, [0-9]+ failed/ { sum += $word } END { print sum }' "$1"
}

now() {
    date +%s.%N
}

# run.sh --one NUMBER TEST: runs one program in the folder RUN of the run that it belongs to, prints what
# there is to say, and leaves a line "passed failed skipped seconds test".
if [ "$1" = --one ]; then
    output=$RUN/$2.output test=$3 began=$(now)
    if [ -n "${SANITIZER_LOGS:-}" ]; then
        logs=$RUN/$2.logs
        mkdir -p "$logs"
        export SANITIZER_LOGS="$logs"
        export ASAN_OPTIONS="log_path=$logs/asan:detect_leaks=1:abort_on_error=0:${ASAN_OPTIONS:-}"
        export UBSAN_OPTIONS="log_path=$logs/ubsan:print_stacktrace=1:${UBSAN_OPTIONS:-}"
        export LSAN_OPTIONS="log_path=$logs/lsan:print_suppressions=0:${LSAN_OPTIONS:-}"
        export TSAN_OPTIONS="log_path=$logs/tsan:${TSAN_OPTIONS:-}"
    fi
    LD_PRELOAD="${TEST_LOCALE:+$BUILD/tests/host_locale.so}${LD_PRELOAD:+:$LD_PRELOAD}" \
        timeout "${TIMEOUT:-900}" "$test" >"$output" 2>&1
    status=$?
    seconds=$(echo "$(now) $began" | awk '{ printf "%.1f", $1 - $2 }')
    ok=1 no=0 skipped=0 note=
    if [ -n "$(count "$output" Tested)" ]; then
        ok=$(count "$output" Passing)
        no=$(($(count "$output" Failing) + $(count "$output" Crashing)))
    elif [ "$status" -eq 77 ]; then
        ok=0 skipped=1
        note="$(tail -n 1 "$output")"
    elif grep -q '^[0-9]* passed, [0-9]* failed' "$output"; then
        ok=$(total "$output" 1)
        no=$(total "$output" 3)
    fi
    skipped=$((skipped + $(grep -c '^\[SKIP\]' "$output")))
    if [ "$((ok + no + skipped))" -eq 0 ]; then
        no=1 note="no test was run"
    fi
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$no" -eq 0 ]; then
        ok=0 no=1
        [ "$status" -ne 124 ] || note="no end after ${TIMEOUT:-900} s"
    fi
    if [ -n "${SANITIZER_LOGS:-}" ] && [ -n "$(ls -A "$logs")" ]; then
        cat "$logs"/* >>"$output"
        no=$((no + 1))
        note="sanitizer report"
    fi
    echo "$ok $no $skipped $seconds $test" >"$RUN/$2.result"
    exec 9>"$RUN/printing"
    flock 9
    if [ "$no" -ne 0 ]; then
        cat "$output"
        echo "FAIL $test (exit $status) $note"
    else
        grep '^\[SKIP\]' "$output"
        echo "ok   $test ($ok) $seconds s $note"
    fi
    exit 0
fi

build=$1
shift
mkdir -p "$build/tests"
RUN=$(mktemp -d "$build/tests/run.XXXXXX") || exit 1
RUN=$(cd "$RUN" && pwd)
trap 'rm -rf "$RUN"' EXIT
trap 'exit 130' INT TERM HUP
times=$build/tests/times
jobs=${JOBS:-$(($(nproc 2>/dev/null || echo 1) + 1))}

# Threads that spin while they wait are slow when cores are shared; programs side by side need no
# tests side by side within them. Criterion says what it skips.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" BUILD="$build" RUN
libraries=$(cd "$build/tests" && pwd)/no_libgit2
# Another oneDNN than the system's, for the scripts that compile.
if [ -n "${DNNL:-}" ]; then
    export CPATH="$DNNL/include${CPATH:+:$CPATH}" LIBRARY_PATH="$DNNL/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
    libraries=$libraries:$DNNL/lib
fi
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CRITERION_JOBS="${CRITERION_JOBS:-1}" CRITERION_VERBOSITY_LEVEL=1

# in_list WORD LIST
in_list() {
    for word in $2; do
        [ "$word" != "$1" ] || return 0
    done
    return 1
}

# TEST_LOCALE=de_DE.UTF-8: makes this locale in the build folder; test programs run as in a host program that
# has set it.
if [ -n "${TEST_LOCALE:-}" ]; then
    export LOCPATH="$build/tests/locale" LANGUAGE=en
    mkdir -p "$LOCPATH"
    LOCPATH=$(cd "$LOCPATH" && pwd)
    BUILD=$(cd "$build" && pwd)
    if [ ! -d "$LOCPATH/$TEST_LOCALE" ] &&
        ! localedef -c -i "${TEST_LOCALE%.*}" -f "${TEST_LOCALE#*.}" "$LOCPATH/$TEST_LOCALE"; then
        echo "run.sh: localedef makes no $TEST_LOCALE here" >&2
        exit 1
    fi
fi

# "SECONDS NUMBER TEST" of each, as long as the last run took.
: >"$RUN/together"
: >"$RUN/alone"
number=0
for test; do
    number=$((number + 1))
    name=$(basename "$test" .sh)
    seconds=$(awk -v test="$test" '$2 == test { seconds = $1 } END { print seconds }' "$times" 2>/dev/null)
    if [ -z "$seconds" ]; then
        seconds=0
        ! in_list "$name" "$long" || seconds=10
    fi
    list=together
    ! in_list "$name" "$alone" || list=alone
    echo "$seconds $number $test" >>"$RUN/$list"
done

# run_list LIST JOBS: the longest first.
run_list() {
    sort -k 1,1nr -k 2,2n "$RUN/$1" | sed 's/^[^ ]* //' |
        xargs -P "$2" -n 2 -r "$0" --one
}
run_list together "$jobs"
run_list alone 1

passed=0 failed=0 skipped=0
number=0
for test; do
    number=$((number + 1))
    result=$RUN/$number.result
    [ -e "$result" ] || echo "0 1 0 0 $test" >"$result"
    read -r ok no skips _ <"$result"
    passed=$((passed + ok))
    failed=$((failed + no))
    skipped=$((skipped + skips))
    [ "$no" -eq 0 ] || echo "failed: $test"
done
cat "$RUN"/*.result | awk '{ print $4, $5 }' | sort -k 1,1nr >"$RUN/times"
mv "$RUN/times" "$times"
if [ -n "${SANITIZER_LOGS:-}" ]; then
    rm -rf "$build/tests/reports"
    mkdir -p "$build/tests/reports"
    for logs in "$RUN"/*.logs; do
        [ -z "$(ls -A "$logs")" ] || cp "$logs"/* "$build/tests/reports/"
    done
fi
head -n 5 "$times" | awk '{ sub(".*/", "", $2); text = text (NR > 1 ? ", " : "") $2 " " $1 " s" }
    END { print "the longest: " text }'
summary="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || summary="$summary, $skipped skipped"
echo "$summary" >"$RUN/summary"
mv "$RUN/summary" "$build/tests/summary"
echo "$summary"
[ "$failed" -eq 0 ]
