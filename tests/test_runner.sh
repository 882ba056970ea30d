#!/bin/sh
# test_runner.sh - the runner itself: what it counts, and that a sanitizer's report is a failure even
# when the test program is content; that programs run side by side, print one after the other, and that
# what measures time runs alone.
set -eu
unset TEST_LOCALE # the programs here are scripts
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
export top

program() {
    cat >"$top/$1"
    chmod +x "$top/$1"
}
program good <<'END'
#!/bin/sh
END
program bad <<'END'
#!/bin/sh
exit 1
END
program skips <<'END'
#!/bin/sh
echo "skipped: no data"
exit 77
END
program counts <<'END'
#!/bin/sh
echo "40 passed, 2 failed"
exit 1
END
program criterion <<'END'
#!/bin/sh
echo '[====] Synthesis: Tested: 9 | Passing: 6 | Failing: 1 | Crashing: 2 '
exit 1
END
program empty <<'END'
#!/bin/sh
echo '[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0 '
END
program crashes <<'END'
#!/bin/sh
kill -SEGV $$
END
program leaks <<'END'
#!/bin/sh
echo "leaked" >"$SANITIZER_LOGS/lsan.1"
END

program criterion_skips <<'END'
#!/bin/sh
echo '[SKIP] suite::test: no such CPU'
echo '[====] Synthesis: Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0 '
END
program all_skipped <<'END'
#!/bin/sh
echo '[SKIP] suite::test: no such CPU'
echo '[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0 '
END
program nothing <<'END'
#!/bin/sh
echo "0 passed, 0 failed"
END
program hangs <<'END'
#!/bin/sh
exec sleep 600
END
# Each waits until the other is there as well, so that alone it would wait for ever; and fails, to be
# shown.
for name in left right; do
    program "$name" <<'END'
#!/bin/sh
name=$(basename "$0")
touch "$top/$name.here"
echo "$name begins"
while [ ! -e "$top/left.here" ] || [ ! -e "$top/right.here" ]; do sleep 0.02; done
echo "$name ends"
exit 1
END
done
# One that run.sh lists as what must run alone, and two that look for it.
program test_bench <<'END'
#!/bin/sh
touch "$top/measuring"
[ -z "$(ls "$top"/busy*.here 2>/dev/null)" ] || exit 1
sleep 0.2
rm "$top/measuring"
END
for name in busy1 busy2; do
    program "$name" <<'END'
#!/bin/sh
here=$top/$(basename "$0").here
touch "$here"
[ ! -e "$top/measuring" ] || exit 1
sleep 0.3
[ ! -e "$top/measuring" ] || exit 1
rm "$here"
END
done

# expect STATUS LAST_LINE PROGRAM...
expect() {
    status=$1 line=$2
    shift 2
    got=0
    SANITIZER_LOGS=$top/logs tests/run.sh "$top" "$@" >"$top/out" 2>&1 || got=1
    if [ "$got" -ne "$status" ] || [ "$(tail -n 1 "$top/out")" != "$line" ]; then
        cat "$top/out"
        echo "test_runner: expected $status, $line"
        exit 1
    fi
}
expect 0 "1 passed, 0 failed" "$top/good"
expect 1 "1 passed, 1 failed" "$top/good" "$top/bad"
expect 0 "1 passed, 0 failed, 1 skipped" "$top/skips" "$top/good"
expect 1 "40 passed, 2 failed" "$top/counts"
expect 1 "6 passed, 3 failed" "$top/criterion"
expect 1 "0 passed, 1 failed" "$top/empty"
expect 1 "0 passed, 1 failed" "$top/crashes"
expect 1 "2 passed, 1 failed" "$top/good" "$top/leaks"
grep -q "^leaked" "$top/out"
grep -q leaked "$top/tests/reports"/*
expect 0 "1 passed, 0 failed" "$top/good"
[ -z "$(ls "$top/tests/reports")" ]
expect 1 "0 passed, 1 failed" "$top/there-is-none"
grep -q "no such\|not found\|No such" "$top/out"
expect 0 "3 passed, 0 failed, 1 skipped" "$top/criterion_skips"
grep -q '^\[SKIP\] suite::test: no such CPU' "$top/out"
expect 0 "0 passed, 0 failed, 1 skipped" "$top/all_skipped"
expect 1 "0 passed, 1 failed" "$top/nothing"
TIMEOUT=0.2 expect 1 "0 passed, 1 failed" "$top/hangs"
grep -q "^FAIL .*hangs (exit 124) no end after 0.2 s" "$top/out"
[ "$(cat "$top/tests/summary")" = "0 passed, 1 failed" ]

# Side by side, and yet the lines of each together.
JOBS=2 TIMEOUT=60 expect 1 "0 passed, 2 failed" "$top/left" "$top/right"
for name in left right; do
    grep -A 1 "^$name begins" "$top/out" | grep -q "^$name ends"
done
JOBS=3 expect 0 "3 passed, 0 failed" "$top/test_bench" "$top/busy1" "$top/busy2"

# Two runs at once in one folder: each counts its own.
JOBS=1 tests/run.sh "$top" "$top/good" "$top/busy1" "$top/counts" >"$top/out1" 2>&1 &
first=$!
JOBS=1 tests/run.sh "$top" "$top/bad" "$top/good" >"$top/out2" 2>&1 || true
wait "$first" || true
if [ "$(tail -n 1 "$top/out1")" != "42 passed, 2 failed" ] ||
    [ "$(tail -n 1 "$top/out2")" != "1 passed, 1 failed" ]; then
    cat "$top/out1" "$top/out2"
    echo "test_runner: two runs at once disturb each other"
    exit 1
fi
[ -z "$(ls -d "$top/tests"/run.* 2>/dev/null)" ]
