#!/bin/sh
# run.sh FOLDER TARGET... - runs each libFuzzer target for FUZZ_SECONDS (20), as many at a time as there
# are cores, from the seeds in tests/fuzz/seeds.tar.gz and what earlier runs found, kept in
# FOLDER/corpus/NAME. A crash, a leak, a sanitizer's report or an input that takes too long is a failure;
# the input stays in FOLDER/found. One target alone: FUZZ_ONLY=NAME. FOLDER/executions has a line for each
# run: its CPU seconds and executions, of which RECORD.md keeps the sums. Words that a target knows are in
# NAME.dict; those of the command line are the names of all ops and options as well.
#
# minimize.sh makes the seeds from what runs have found; replay.c runs them without a fuzzer, in
# `ninja test` and `ninja asan`, so an input that once failed is added to them: tests/fuzz/seeds.sh add NAME found-WHAT.
set -u
export OMP_NUM_THREADS=1 UBSAN_OPTIONS=print_stacktrace=1

# run.sh --one FOLDER TARGET
if [ "$1" = --one ]; then
    folder=$2 target=$3
    name=$(basename "$target" | sed 's/^fuzz_//')
    [ -z "${FUZZ_ONLY:-}" ] || [ "$FUZZ_ONLY" = "$name" ] || exit 0
    mkdir -p "$folder/corpus/$name"
    dictionary=
    if [ -f "tests/fuzz/$name.dict" ]; then
        dictionary=-dict=$folder/$name.dict
        cp "tests/fuzz/$name.dict" "$folder/$name.dict"
        [ "$name" != cli ] || {
            grep -oE '&adj_op_[a-z0-9_]+' ops/registry.c | sed 's/&adj_op_\(.*\)/"\1"/'
            grep -rhoE '"--[a-z-]+"' cli | sort -u
        } >>"$folder/$name.dict"
    fi
    # The mask: what the code under test prints is not wanted, what the fuzzer prints is.
    "$target" -max_total_time="${FUZZ_SECONDS:-20}" -timeout=20 -rss_limit_mb=2048 -max_len=8192 \
        -close_fd_mask=3 -print_final_stats=1 -artifact_prefix="$folder/found/$name-" \
        $dictionary "$folder/corpus/$name" "$folder/seeds/$name" >"$folder/$name.log" 2>&1 || {
        tail -n 60 "$folder/$name.log"
        echo "FAIL fuzz $name"
        exit 1
    }
    # Of the children, in user and system mode: the second line of times, "1m2.3s 0m4.5s". (A subshell
    # would tell of its own children.)
    times >"$folder/$name.times"
    spent=$(sed -n 2p "$folder/$name.times" | tr 'ms' '  ' | awk '{ print int(60 * ($1 + $3) + $2 + $4) }')
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$name.log")
    echo "$name $spent CPU seconds $runs executions" >>"$folder/executions"
    echo "ok   fuzz $name: $runs executions in $spent CPU seconds"
    exit 0
fi

folder=$1
shift
mkdir -p "$folder/found"
tests/fuzz/seeds.sh unpack "$folder/seeds" || exit 1
printf '%s\n' "$@" | xargs -P "$(nproc 2>/dev/null || echo 1)" -n 1 "$0" --one "$folder"
