#!/bin/bash
# bench.sh - adjoint bench by two and three ranks: what it prints and writes, and what it refuses. Run from
# the project's folder; MPIRUN (mpirun) starts the ranks. That numbers fit each other is tested, never how
# large they are.
set -u
project=$PWD tool=$PWD/build/adjoint
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

# That the numbers of a report fit each other, in awk: a line has a quoted name and a number.
# shellcheck disable=SC2016 # awk's own
fits='
{ name = $2; gsub(/"/, "", name); v[name] = $3 }
function is_near(a, b) { return b > 0 && a - b <= 1e-6 * b && b - a <= 1e-6 * b }
END {
    exit !(v["ranks"] == n && v["batch"] == 2 && v["runs"] >= 3 &&
        is_near(v["images_per_s"], n * 2 / (1e-3 * v["median_ms"])) &&
        is_near(v["alone_images_per_s"], 2 / (1e-3 * v["alone_ms"])) &&
        is_near(v["efficiency"], v["images_per_s"] / (n * v["alone_images_per_s"])) &&
        is_near(v["efficiency_apart"], v["apart_ms"] / v["median_ms"]) &&
        v["alone_arena_bytes"] > 0 && v["arena_bytes"] > 0 &&
        v["hidden"] >= 0 && v["hidden"] <= 1 && v["traveled_ms"] > 0 && v["waited_ms"] > 0 &&
        v["bits_per_s"] > 1e6 && v["bits_per_s"] < 1e14 && v["latency"] > 0 && v["latency"] < 1)
}'

for n in 2 3; do
    # shellcheck disable=SC2086 # none, or one option
    timeout 120 $mpirun $more -n $n "$tool" bench --model lenet --batch 2 --threads 1 --seconds 0.1 \
        --json r.json >out 2>err || complain "$n ranks: $(cat err)"
    grep -q "^ranks: $n$" out || complain "$n ranks: printed $(cat out)"
    [ "$(grep -c '^efficiency: ' out)" = 1 ] || complain "$n ranks: not told once: $(cat out)"
    awk -v n=$n -F'[:, ]+' "$fits" r.json || complain "$n ranks: $(cat r.json)"
done
# Where a reduction starts and where it is waited for, in the table and in the file.
# shellcheck disable=SC2086 # none, or one option
timeout 120 $mpirun $more -n 2 "$tool" bench --model lenet --batch 2 --threads 1 --seconds 0.1 --profile \
    --json r.json >out 2>err || complain "--profile: $(cat err)"
for file in out r.json; do
    for step in all_reduce_start all_reduce_wait; do
        grep -q $step $file || complain "--profile: no $step in $file"
    done
done
# All gradients and no statistics: 454,922 parameters of 4 bytes. 14.557 Mbit take 145.57 ms over 100 Mbit/s.
python3 "$project/bench/scale.py" r.json 2 --link 1e8,1e-5 >out 2>err || complain "scale.py: $(cat err)"
grep -q '1.82 MB in' out && awk '$1 == 2 { exit !($2 > 145.57) }' out || complain "scale.py: $(cat out)"
# shellcheck disable=SC2086 # none, or one option
timeout 60 $mpirun $more -n 2 "$tool" bench --model lenet --batch 2 --infer >out 2>err &&
    complain "--infer by two ranks is not refused"
grep -q 'runs in one process (got 2 ranks)' err || complain "--infer: $(cat err)"
[ $failed -eq 0 ] && echo "bench by several ranks: all is right"
[ $failed -eq 0 ]
