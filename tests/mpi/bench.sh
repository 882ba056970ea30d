#!/bin/bash
# bench.sh - adjoint bench by two and three ranks: what it prints and writes, and what it refuses. Run from
# the project's folder; MPIRUN (mpirun) starts the ranks. That numbers fit each other is tested, never how
# large they are.
set -u
tool=$PWD/build/adjoint
# shellcheck source=tests/mpi/processes.sh
. tests/mpi/processes.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

complain() {
    echo "mpi/bench.sh: $*" >&2
    failed=$((failed + 1))
}

for n in 2 3; do
    # shellcheck disable=SC2086 # none, or one option
    timeout 120 $mpirun $more -n $n "$tool" bench --model lenet --batch 2 --threads 1 --seconds 0.1 \
        --json r.json >out 2>err || complain "$n ranks: $(cat err)"
    grep -q "$n ranks, 1 threads each" out || complain "$n ranks: printed $(cat out)"
    [ "$(grep -c 'efficiency' out)" = 1 ] || complain "$n ranks: not told once: $(cat out)"
    python3 - $n <<'END' || complain "$n ranks: $(cat r.json)"
import json, sys
r, n = json.load(open("r.json")), int(sys.argv[1])
near = lambda a, b: abs(a - b) <= 1e-6 * abs(b)
assert r["ranks"] == n and r["batch"] == 2 and r["runs"] >= 3
assert near(r["images_per_s"], n * 2 / (1e-3 * r["median_ms"]))
assert near(r["alone_images_per_s"], 2 / (1e-3 * r["alone_ms"]))
assert near(r["efficiency"], r["images_per_s"] / (n * r["alone_images_per_s"]))
assert 0 <= r["hidden"] <= 1 and r["travelled_ms"] > 0 and r["waited_ms"] > 0
assert 1e6 < r["bits_per_s"] < 1e14 and 0 < r["latency"] < 1
END
done
# shellcheck disable=SC2086 # none, or one option
timeout 60 $mpirun $more -n 2 "$tool" bench --model lenet --batch 2 --infer >out 2>err &&
    complain "--infer by two ranks is not refused"
grep -q 'are of one process (got 2 ranks)' err || complain "--infer: $(cat err)"
[ $failed -eq 0 ] && echo "bench by several ranks: all is right"
[ $failed -eq 0 ]
