#!/bin/sh
# test_runner.sh - the runner itself: what it counts, and that a sanitizer's report is a failure even
# when the test program is content.
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

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
expect 1 "0 passed, 1 failed" "$top/there-is-none"
grep -q "no such\|not found\|No such" "$top/out"
