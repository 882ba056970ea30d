#!/bin/bash
# faults.sh [TIMES [SILENCE]] - kills and stops each rank of a training in turn, so many times
# altogether (default 6), at moments that differ: the others have to end within 30 s with a sentence
# that names it, and --resume has to go on from the checkpoint. (With MPICH, what is killed is not
# named.) SILENCE: seconds, default 3. Run from the project's folder; MPIRUN (mpirun) starts
# the ranks. Prints a table.
set -u
times=${1:-6}
silence=${2:-3}
ranks=3
tool=$PWD/build/adjoint
# shellcheck source=tests/mpi/processes.sh
. tests/mpi/processes.sh
export OMP_NUM_THREADS=1 ADJOINT_TUNE=off
folder=$(mktemp -d)
trap 'kill_with "$folder/c.ckpt"; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0
slowest=0

complain() {
    echo "faults: $*: $(cat err out | grep -v "^$" | tail -20)" >&2
    failed=$((failed + 1))
}

printf '%-6s %-4s %-10s %-8s %-4s %s\n' signal rank 'after (s)' 'ended in' exit resumed
for i in $(seq 0 $((times - 1))); do
    rank=$((i % ranks))
    signal=KILL
    [ $((i / ranks % 2)) -eq 0 ] || signal=STOP
    rm -f c.ckpt*
    # shellcheck disable=SC2086 # none, or one option
    $mpirun $more -n $ranks "$tool" train --epochs 1000 --limit 300 --batch 60 --checkpoint "$folder/c.ckpt" \
        --checkpoint-every 2 --parallel timeout="$silence" >out 2>err &
    while ! [ -e c.ckpt ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
    delay=0.$((RANDOM % 90 + 10))
    sleep $delay
    pid=$(pid_of_rank $rank "$folder/c.ckpt")
    start=$(date +%s%N)
    kill -$signal "$pid"
    for _ in $(seq 1 400); do
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    ms=$((($(date +%s%N) - start) / 1000000))
    kill -9 $! 2>/dev/null && complain "SIG$signal to rank $rank: no end after $ms ms"
    wait $!
    code=$?
    [ $ms -gt $slowest ] && slowest=$ms
    [ $ms -lt 30000 ] || complain "SIG$signal to rank $rank: ended after $ms ms"
    # by our own sentence or by Open MPI's mpirun. MPICH's kills the others before they can say anything,
    # and names the number of a process: now and then that of one that it has killed itself.
    grep -qiE "rank[ =]*$rank|process rank $rank|ranks [0-9, ]*\b$rank\b.* have not answered" err ||
        { [ $signal = KILL ] && grep -q 'BAD TERMINATION' out; } || complain "SIG$signal to rank $rank is not named"
    [ $code -ne 0 ] || complain "SIG$signal to rank $rank: exit status 0"
    for _ in $(seq 1 50); do
        [ -n "$(pids_with "$folder/c.ckpt")" ] || break
        sleep 0.1
    done
    [ -z "$(pids_with "$folder/c.ckpt")" ] || complain "SIG$signal to rank $rank: somebody is left"
    # resume, and wait for the message
    "$tool" train --resume --checkpoint "$folder/c.ckpt" >again 2>err &
    resumed $! again || complain "SIG$signal to rank $rank: no resumption"
    where=$(grep -o 'resumed after .*' again)
    printf '%-6s %-4s %-10s %-8s %-4s %s\n' $signal $rank $delay "$((ms / 1000)).$((ms % 1000 / 100)) s" $code "$where"
done
echo "$times faults, slowest end after $((slowest / 1000)).$((slowest % 1000 / 100)) s, $failed wrong"
[ $failed -eq 0 ]
